/* The compiled look-up of addresses: what page_index.py and links.py do for plain addresses, with equal results.
 * lookup.py has the contract.
 *
 * What is not plain (no ASCII, a query, an escape, a host that was not parsed before, two pages of one hash) is left to
 * Python, as the place of its href. So there is no second reading of the URL standard here: the text of a plain address
 * is what parsing it would give. Time grows with the length of the hrefs. A table is read while nothing is added to it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char byte;

/* --- BLAKE2b with a digest of eight bytes (RFC 7693), as an integer: `hash64` of crawler/model/urls.py -------------- */

static const uint64_t START[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};
static const byte ORDER[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static inline uint64_t
turned(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

#define MIX(a, b, c, d, x, y)                                                                                          \
    do {                                                                                                               \
        v[a] += v[b] + (x);                                                                                            \
        v[d] = turned(v[d] ^ v[a], 32);                                                                                \
        v[c] += v[d];                                                                                                  \
        v[b] = turned(v[b] ^ v[c], 24);                                                                                \
        v[a] += v[b] + (y);                                                                                            \
        v[d] = turned(v[d] ^ v[a], 16);                                                                                \
        v[c] += v[d];                                                                                                  \
        v[b] = turned(v[b] ^ v[c], 63);                                                                                \
    } while (0)

static void
compress(uint64_t *state, const byte *block, uint64_t length, int is_last)
{
    uint64_t v[16], m[16];
    for (int i = 0; i < 16; i++) {
        uint64_t word = 0;
        for (int at = 7; at >= 0; at--) { /* a compiler makes one load of it */
            word = word << 8 | block[8 * i + at];
        }
        m[i] = word;
    }
    for (int i = 0; i < 8; i++) {
        v[i] = state[i];
        v[i + 8] = START[i];
    }
    v[12] ^= length;
    v[14] ^= is_last ? ~(uint64_t)0 : 0;
    for (int round = 0; round < 12; round++) {
        const byte *s = ORDER[round];
        MIX(0, 4, 8, 12, m[s[0]], m[s[1]]);
        MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);
        MIX(2, 6, 10, 14, m[s[4]], m[s[5]]);
        MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);
        MIX(0, 5, 10, 15, m[s[8]], m[s[9]]);
        MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);
        MIX(2, 7, 8, 13, m[s[12]], m[s[13]]);
        MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++) {
        state[i] ^= v[i] ^ v[i + 8];
    }
}

static int64_t
hash_of(const byte *text, size_t length)
{
    uint64_t state[8];
    byte block[128];
    size_t done = 0;
    memcpy(state, START, sizeof state);
    state[0] ^= 0x01010008;
    for (; length - done > sizeof block; done += sizeof block) {
        compress(state, text + done, done + sizeof block, 0);
    }
    memset(block, 0, sizeof block);
    memcpy(block, text + done, length - done);
    compress(state, block, length, 1);
    uint64_t found = 0;
    for (int at = 0; at < 8; at++) { /* the digest begins with the word's low byte, and is read from its high one */
        found = found << 8 | (state[0] >> 8 * at & 0xff);
    }
    return (int64_t)found;
}

/* --- the table of pages --------------------------------------------------------------------------------------------- */

typedef struct {
    Py_buffer slots, hashes, domains; /* uint32 by slot, int64 by page, uint32 by page */
} Table;

/* The slot of a hash, or the free slot for it. There is always a free one. */
static size_t
slot_of(const Table *table, int64_t hash)
{
    const uint32_t *slots = table->slots.buf;
    const int64_t *hashes = table->hashes.buf;
    size_t mask = (size_t)table->slots.len / sizeof *slots - 1;
    size_t at = (size_t)((uint64_t)hash & mask);
    while (slots[at] != 0 && hashes[slots[at]] != hash) {
        at = (at + 1) & mask;
    }
    return at;
}

static void
release(Table *table)
{
    PyBuffer_Release(&table->slots);
    PyBuffer_Release(&table->hashes);
    PyBuffer_Release(&table->domains);
}

/* `domains` may be NULL. A buffer that was not got has no object, and releasing it does nothing. */
static int
get_table(Table *table, PyObject *slots, PyObject *hashes, PyObject *domains, int flags)
{
    memset(table, 0, sizeof *table);
    if (PyObject_GetBuffer(slots, &table->slots, flags) < 0
        || PyObject_GetBuffer(hashes, &table->hashes, PyBUF_SIMPLE) < 0
        || (domains != NULL && PyObject_GetBuffer(domains, &table->domains, PyBUF_SIMPLE) < 0)) {
        release(table);
        return -1;
    }
    return 0;
}

static PyObject *
find_slot(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Table table;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "slot(slots, hashes, hash)");
        return NULL;
    }
    int64_t hash = PyLong_AsLongLong(arguments[2]);
    if ((hash == -1 && PyErr_Occurred()) || get_table(&table, arguments[0], arguments[1], NULL, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    size_t at = slot_of(&table, hash);
    release(&table);
    return PyLong_FromSize_t(at);
}

static PyObject *
fill_slots(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Table table;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "fill(slots, hashes)");
        return NULL;
    }
    if (get_table(&table, arguments[0], arguments[1], NULL, PyBUF_WRITABLE) < 0) {
        return NULL;
    }
    uint32_t *slots = table.slots.buf;
    const int64_t *hashes = table.hashes.buf;
    size_t pages = (size_t)table.hashes.len / sizeof *hashes, mask = (size_t)table.slots.len / sizeof *slots - 1;
    for (size_t number = 1; number < pages; number++) {
        size_t at = (size_t)((uint64_t)hashes[number] & mask);
        while (slots[at] != 0) {
            at = (at + 1) & mask;
        }
        slots[at] = (uint32_t)number;
    }
    release(&table);
    Py_RETURN_NONE;
}

/* --- plain addresses ------------------------------------------------------------------------------------------------ */

enum { LETTER = 1, DOT = 2, PERCENT = 4 }; /* LETTER: what may begin a segment of a plain path */

static byte KIND[256];

static void
fill_kinds(void)
{
    for (const char *at = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~"; *at != '\0'; at++) {
        KIND[(byte)*at] = LETTER;
    }
    KIND['.'] = DOT;
    KIND['%'] = PERCENT;
}

typedef struct {
    const char *text;
    size_t length;
} Slice;

/* The characters of a str; its length is -1 (as a size_t) unless it is ASCII. */
static Slice
slice_of(PyObject *text)
{
    Slice found = {NULL, (size_t)-1};
    if (PyUnicode_Check(text) && PyUnicode_IS_ASCII(text)) {
        found.text = (const char *)PyUnicode_1BYTE_DATA(text);
        found.length = (size_t)PyUnicode_GET_LENGTH(text);
    }
    return found;
}

static int
is_none(Slice slice)
{
    return slice.length == (size_t)-1;
}

static int
begins(Slice slice, size_t at, const char *word, size_t length)
{
    return slice.length >= at && slice.length - at >= length && memcmp(slice.text + at, word, length) == 0;
}

static int
is_absolute(Slice href)
{
    return begins(href, 0, "https://", 8) || begins(href, 0, "http://", 7);
}

static PyObject *
joined(const char *one, size_t length, const char *other, size_t more)
{
    PyObject *text = PyUnicode_New((Py_ssize_t)(length + more), 127);
    if (text != NULL) {
        memcpy(PyUnicode_1BYTE_DATA(text), one, length);
        memcpy(PyUnicode_1BYTE_DATA(text) + length, other, more);
    }
    return text;
}

typedef struct {
    Slice origin, directory, whole;
} Base;

/* Base._below: a path that may begin with `./` or `../`. */
static PyObject *
below(const Base *base, Slice href)
{
    size_t end = base->directory.length, at = 0;
    for (;;) {
        if (begins(href, at, "../", 3)) {
            at += 3;
            if (end - 1 > base->origin.length) {
                for (end--; base->directory.text[end - 1] != '/'; end--) {
                }
            }
        } else if (begins(href, at, "./", 2)) {
            at += 2;
        } else {
            return joined(base->directory.text, end, href.text + at, href.length - at);
        }
    }
}

/* Base.addresses, for one href. Py_None: its meaning needs the standard's rules. */
static PyObject *
address_of(const Base *base, PyObject *object, Slice href)
{
    if (is_absolute(href)) {
        return Py_NewRef(object);
    }
    if (base->whole.length == 0 || href.length == 0) {
        return Py_NewRef(Py_None);
    }
    byte first = (byte)href.text[0];
    if (first == '/') {
        if (href.length > 1 && memchr("/\\\t\n\r", href.text[1], 5) != NULL) {
            return Py_NewRef(Py_None);
        }
        return joined(base->origin.text, base->origin.length, href.text, href.length);
    }
    if (KIND[first] == 0 || memchr(href.text, ':', href.length) != NULL) {
        return Py_NewRef(Py_None);
    }
    if (first == '.') {
        return below(base, href);
    }
    return joined(base->directory.text, base->directory.length, href.text, href.length);
}

/* Is this a path that parsing and normalising do not change, except for a slash at its end? `_is_plain` of urls.py. */
static int
is_plain(const char *at, const char *end)
{
    while (at < end && *at == '/') {
        at++;
        if (at == end) {
            return 1;
        }
        if (KIND[(byte)*at] != LETTER) {
            return 0;
        }
        while (at < end && KIND[(byte)*at] & (LETTER | DOT)) {
            at++;
        }
    }
    return at == end;
}

/* --- look-up -------------------------------------------------------------------------------------------------------- */

typedef struct {
    Base base;
    PyObject *young, *old, *new, *sites, *names; /* dicts, and the list of the domains' names */
    PyTypeObject *link;
    PyObject *target;
    size_t longest, remembered; /* characters of a key, and of an address that is remembered */
    Table table;
    PyObject *site; /* of the address before this one: a strong reference, or NULL */
    char site_text[300];
    size_t site_length;
} Lookup;

/* What is known of the site of this address, whose path begins at `slash`; NULL without an error: nothing. */
static PyObject *
site_of(Lookup *lookup, Slice address, size_t slash)
{
    if (lookup->site != NULL && lookup->site_length == slash && memcmp(lookup->site_text, address.text, slash) == 0) {
        return lookup->site;
    }
    PyObject *text = joined(address.text, slash, "", 0);
    if (text == NULL) {
        return NULL;
    }
    PyObject *site = PyDict_GetItemWithError(lookup->sites, text);
    Py_DECREF(text);
    if (site != NULL && PyTuple_Check(site) && PyTuple_GET_SIZE(site) == 3 && slash <= sizeof lookup->site_text) {
        Py_XSETREF(lookup->site, Py_NewRef(site));
        memcpy(lookup->site_text, address.text, slash);
        lookup->site_length = slash;
        return site;
    }
    return NULL;
}

static PyObject *
name_of(const Lookup *lookup, uint32_t number)
{
    return PyList_GET_ITEM(lookup->names, ((const uint32_t *)lookup->table.domains.buf)[number]);
}

/* A new reference to the target that a link to a page that is not known has, or NULL. Takes the texts' references. */
static PyObject *
new_target(const Lookup *lookup, PyObject *key, PyObject *wire, PyObject *domain, int64_t hash)
{
    PyObject *number = PyLong_FromLongLong(hash);
    PyObject *link = number == NULL ? NULL : lookup->link->tp_alloc(lookup->link, 4);
    if (link == NULL) {
        Py_XDECREF(number);
        Py_DECREF(key);
        Py_DECREF(wire);
        return NULL;
    }
    PyTuple_SET_ITEM(link, 0, key);
    PyTuple_SET_ITEM(link, 1, wire);
    PyTuple_SET_ITEM(link, 2, Py_NewRef(domain));
    PyTuple_SET_ITEM(link, 3, number);
    PyObject *target = PyObject_CallOneArg(lookup->target, link);
    Py_DECREF(link);
    return target;
}

/* The page at an address, or a new target for it (a new reference): 1. 0: it is left to Python. -1: an error.
 * `LinkFinder._find`, `LinkResolver._plain_link` and `PageIndex.find`. */
static int
find_page(Lookup *lookup, Slice address, PyObject *object, uint32_t *page, PyObject **target)
{
    const uint32_t *slots = lookup->table.slots.buf;
    int64_t hash = hash_of((const byte *)address.text, address.length);
    uint32_t number = slots[slot_of(&lookup->table, hash)];
    if (number != 0) {
        Slice name = slice_of(name_of(lookup, number));
        if (!is_none(name) && begins(address, 8, name.text, name.length) && begins(address, 8 + name.length, "/", 1)) {
            *page = number;
            return 1;
        }
    }
    const char *path = address.length > 8 ? memchr(address.text + 8, '/', address.length - 8) : NULL;
    if (path == NULL || !is_plain(path, address.text + address.length)) {
        return 0;
    }
    size_t slash = (size_t)(path - address.text), rest = address.length - slash;
    PyObject *site = site_of(lookup, address, slash);
    if (site == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Slice key = slice_of(PyTuple_GET_ITEM(site, 1)), wire = slice_of(PyTuple_GET_ITEM(site, 2));
    PyObject *domain = PyTuple_GET_ITEM(site, 0);
    size_t length = rest > 1 && path[rest - 1] == '/' ? rest - 1 : rest;
    if (is_none(key) || is_none(wire) || key.length + length > lookup->longest || wire.length + rest > lookup->longest) {
        return 0;
    }
    PyObject *text;
    if (key.length + length == address.length && memcmp(key.text, address.text, key.length) == 0) {
        text = Py_NewRef(object);
    } else {
        text = joined(key.text, key.length, path, length);
        if (text == NULL) {
            return -1;
        }
        hash = hash_of(PyUnicode_1BYTE_DATA(text), key.length + length);
        number = slots[slot_of(&lookup->table, hash)];
    }
    if (number != 0) {
        int is_other = PyUnicode_Compare(name_of(lookup, number), domain);
        Py_DECREF(text);
        *page = number;
        return PyErr_Occurred() ? -1 : !is_other; /* another page of the same hash: there is a further one to look for */
    }
    int is_key = length == rest && PyTuple_GET_ITEM(site, 1) == PyTuple_GET_ITEM(site, 2);
    PyObject *asked = is_key ? Py_NewRef(text) : joined(wire.text, wire.length, path, rest);
    if (asked == NULL) {
        Py_DECREF(text);
        return -1;
    }
    *target = new_target(lookup, text, asked, domain, hash);
    return *target == NULL ? -1 : 1;
}

/* The page of one href, as `numbers` of `resolve` has it, or a target: 1. 0: it is left to Python. -1: an error. */
static int
look_up(Lookup *lookup, PyObject *href, PyObject **number, PyObject **target)
{
    PyObject *found = PyDict_GetItemWithError(lookup->young, href);
    if (found != NULL || PyErr_Occurred()) {
        *number = Py_XNewRef(found);
        return found == NULL ? -1 : 1;
    }
    Slice slice = slice_of(href);
    PyObject *object = is_none(slice) ? Py_NewRef(Py_None) : address_of(&lookup->base, href, slice);
    if (object == NULL) {
        return -1;
    }
    int outcome = 0;
    if (object != Py_None) {
        found = object == href ? NULL : PyDict_GetItemWithError(lookup->young, object);
        if (found == NULL && !PyErr_Occurred()) {
            found = PyDict_GetItemWithError(lookup->old, object);
            if (found != NULL && PyDict_SetItem(lookup->young, object, found) < 0) {
                found = NULL;
            }
        }
        if (found != NULL) {
            *number = Py_NewRef(found);
            outcome = 1;
        } else if (!PyErr_Occurred()) {
            found = PyDict_GetItemWithError(lookup->new, object);
            *target = Py_XNewRef(found);
            outcome = found != NULL;
        }
        if (!outcome && !PyErr_Occurred()) {
            uint32_t page = 0;
            slice = slice_of(object);
            outcome = find_page(lookup, slice, object, &page, target);
            if (outcome > 0 && *target != NULL) {
                outcome = PyDict_SetItem(lookup->new, object, *target) < 0 ? -1 : 1;
            } else if (outcome > 0) {
                *number = PyLong_FromUnsignedLong(page);
                int is_kept = *number != NULL && slice.length <= lookup->remembered;
                if (*number == NULL || (is_kept && PyDict_SetItem(lookup->young, object, *number) < 0)) {
                    outcome = -1;
                }
            }
        }
    }
    Py_DECREF(object);
    return PyErr_Occurred() ? -1 : outcome;
}

/* Fill `numbers`, a list of as many as there are hrefs; places of new targets go into a dict, of those left into a list. */
static int
look_up_all(Lookup *lookup, PyObject *hrefs, PyObject *numbers, PyObject *places, PyObject *left)
{
    PyObject *zero = PyLong_FromLong(0);
    int failed = zero == NULL;
    for (Py_ssize_t place = 0; !failed && place < PySequence_Fast_GET_SIZE(hrefs); place++) {
        PyObject *number = NULL, *target = NULL, *at = NULL;
        int outcome = look_up(lookup, PySequence_Fast_GET_ITEM(hrefs, place), &number, &target);
        failed = outcome < 0;
        if (!failed && number == NULL) {
            at = PyLong_FromSsize_t(place);
            failed = at == NULL || (target != NULL ? PyDict_SetItem(places, at, target) : PyList_Append(left, at)) < 0;
            number = Py_NewRef(target != NULL ? zero : Py_None);
        }
        PyList_SET_ITEM(numbers, place, number); /* a place of a list that nobody has seen yet may be NULL */
        Py_XDECREF(target);
        Py_XDECREF(at);
    }
    Py_XDECREF(zero);
    return failed ? -1 : 0;
}

static PyObject *
resolve(PyObject *module, PyObject *arguments)
{
    Lookup lookup;
    PyObject *hrefs, *origin, *directory, *whole, *slots, *hashes, *domains, *link;
    Py_ssize_t longest, remembered;
    memset(&lookup, 0, sizeof lookup);
    if (!PyArg_ParseTuple(
            arguments, "O(UUU)O!O!O!O!nn(OOOO!)OO:resolve", &hrefs, &origin, &directory, &whole, &PyDict_Type,
            &lookup.young, &PyDict_Type, &lookup.old, &PyDict_Type, &lookup.new, &PyDict_Type, &lookup.sites, &longest,
            &remembered, &slots, &hashes, &domains, &PyList_Type, &lookup.names, &link, &lookup.target)) {
        return NULL;
    }
    if (!PyType_Check(link) || !PyType_IsSubtype((PyTypeObject *)link, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "links are tuples");
        return NULL;
    }
    lookup.link = (PyTypeObject *)link;
    lookup.longest = (size_t)longest;
    lookup.remembered = (size_t)remembered;
    lookup.base = (Base){slice_of(origin), slice_of(directory), slice_of(whole)};
    if (is_none(lookup.base.origin) || is_none(lookup.base.directory) || is_none(lookup.base.whole)) {
        lookup.base = (Base){{"", 0}, {"", 0}, {"", 0}}; /* only absolute hrefs are looked at */
    }
    PyObject *sequence = PySequence_Fast(hrefs, "hrefs are a sequence");
    if (sequence == NULL) {
        return NULL;
    }
    if (get_table(&lookup.table, slots, hashes, domains, PyBUF_SIMPLE) < 0) {
        Py_DECREF(sequence);
        return NULL;
    }
    PyObject *numbers = PyList_New(PySequence_Fast_GET_SIZE(sequence)), *places = PyDict_New(), *left = PyList_New(0);
    PyObject *found = NULL;
    if (numbers != NULL && places != NULL && left != NULL
        && look_up_all(&lookup, sequence, numbers, places, left) == 0) {
        found = PyTuple_Pack(3, numbers, places, left);
    }
    Py_XDECREF(numbers);
    Py_XDECREF(places);
    Py_XDECREF(left);
    Py_XDECREF(lookup.site);
    Py_DECREF(sequence);
    release(&lookup.table);
    return found;
}

static PyObject *
hash64(PyObject *module, PyObject *text)
{
    Py_ssize_t length;
    const char *data = PyUnicode_AsUTF8AndSize(text, &length);
    return data == NULL ? NULL : PyLong_FromLongLong(hash_of((const byte *)data, (size_t)length));
}

/* --- the module ----------------------------------------------------------------------------------------------------- */

static int
prepare(PyObject *module)
{
    fill_kinds();
    return PyModule_AddIntConstant(module, "CONTRACT", 1);
}

static PyMethodDef METHODS[] = {
    {"slot", (PyCFunction)(void (*)(void))find_slot, METH_FASTCALL, "The slot of a hash, or the free slot for it."},
    {"fill", (PyCFunction)(void (*)(void))fill_slots, METH_FASTCALL, "Put every page into empty slots."},
    {"resolve", resolve, METH_VARARGS, "The pages of plain addresses; see LinkFinder."},
    {"hash64", hash64, METH_O, "As crawler.model.urls.hash64."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS_OF_MODULE[] = {
    {Py_mod_exec, prepare},
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_lookup",
    .m_doc = "The compiled look-up of addresses; see lookup.py.",
    .m_size = 0,
    .m_methods = METHODS,
    .m_slots = SLOTS_OF_MODULE,
};

PyMODINIT_FUNC
PyInit__lookup(void)
{
    return PyModuleDef_Init(&MODULE);
}
