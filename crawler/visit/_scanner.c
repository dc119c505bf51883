/* The compiled scanner: the twin of pure_scanner.py, with equal results. scanner.py has the contract.
 *
 * One pass over the bytes, no tree and no recursion. A position is a pointer into the input and is compared with the
 * end before each read. Time and memory grow with the input's length: what repeats per byte is constant work, the stack
 * of foreign frames takes a byte for each tag that opened one, and the table of addresses has a keyed hash, so that a
 * page cannot choose addresses that collide.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char byte;

typedef struct {
    const byte *text;
    size_t length;
} Slice;

/* --- bytes ------------------------------------------------------------------------------------------------------ */

enum { SPACE = 1, SLASH = 2, CLOSE = 4, EQUALS = 8, LETTER = 16, DIGIT = 32 };

static byte KIND[256];

static void
fill_kinds(void)
{
    for (int c = 'a'; c <= 'z'; c++) {
        KIND[c] = KIND[c - 'a' + 'A'] = LETTER;
    }
    for (int c = '0'; c <= '9'; c++) {
        KIND[c] = DIGIT;
    }
    KIND['\t'] = KIND['\n'] = KIND['\f'] = KIND['\r'] = KIND[' '] = SPACE;
    KIND['/'] = SLASH;
    KIND['>'] = CLOSE;
    KIND['='] = EQUALS;
}

static inline byte
lower(byte c)
{
    return c >= 'A' && c <= 'Z' ? (byte)(c | 0x20) : c;
}

static int
is_text(const byte *at, size_t length, const char *word)
{
    if (length != strlen(word)) {
        return 0;
    }
    for (size_t i = 0; i < length; i++) {
        if (lower(at[i]) != (byte)word[i]) {
            return 0;
        }
    }
    return 1;
}

static int
starts_with(const byte *at, const byte *end, const char *word, size_t length)
{
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

/* The place behind a text of one to three bytes; the end where there is none. Each byte is looked at once, but for
 * those of a partial match. */
static const byte *
behind(const byte *at, const byte *end, const char *text, size_t length)
{
    while (at < end && (at = memchr(at, text[0], (size_t)(end - at))) != NULL) {
        if (starts_with(at, end, text, length)) {
            return at + length;
        }
        at++;
    }
    return end;
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* A BREAKOUT (and H1) ends foreign content with its start tag and its end tag, an OPENER with the former, a CLOSER with the
 * latter alone. */
enum Tag {
    OTHER, A, AREA, BASE, LINK, META, HTML, TITLE, SCRIPT, STYLE, XMP, IFRAME, NOEMBED, NOFRAMES, TEXTAREA, PLAINTEXT,
    TEMPLATE, SVG, MATH, FOREIGNOBJECT, DESC, MI, MO, MN, MS, MTEXT, ANNOTATION_XML, FONT, NOSCRIPT, H1, BREAKOUT, OPENER,
    CLOSER
};

static const struct {
    const char *name;
    enum Tag tag;
} TAGS[] = {
    {"a", A}, {"address", CLOSER}, {"annotation-xml", ANNOTATION_XML}, {"area", AREA}, {"article", CLOSER},
    {"aside", CLOSER}, {"b", BREAKOUT}, {"base", BASE}, {"big", BREAKOUT}, {"blockquote", BREAKOUT},
    {"body", OPENER}, {"br", BREAKOUT}, {"button", CLOSER}, {"caption", CLOSER}, {"center", BREAKOUT},
    {"code", BREAKOUT}, {"dd", BREAKOUT}, {"desc", DESC}, {"details", CLOSER}, {"div", BREAKOUT}, {"dl", BREAKOUT},
    {"dt", BREAKOUT}, {"em", BREAKOUT}, {"embed", OPENER}, {"fieldset", CLOSER}, {"figcaption", CLOSER},
    {"figure", CLOSER}, {"font", FONT}, {"footer", CLOSER}, {"foreignobject", FOREIGNOBJECT}, {"form", CLOSER},
    {"h1", H1}, {"h2", BREAKOUT}, {"h3", BREAKOUT}, {"h4", BREAKOUT}, {"h5", BREAKOUT}, {"h6", BREAKOUT},
    {"head", OPENER}, {"header", CLOSER}, {"hr", OPENER}, {"html", HTML}, {"i", BREAKOUT}, {"iframe", IFRAME},
    {"img", OPENER}, {"label", CLOSER}, {"li", BREAKOUT}, {"link", LINK}, {"listing", BREAKOUT}, {"main", CLOSER},
    {"math", MATH}, {"menu", BREAKOUT}, {"meta", META}, {"mi", MI}, {"mn", MN}, {"mo", MO}, {"ms", MS},
    {"mtext", MTEXT}, {"nav", CLOSER}, {"nobr", BREAKOUT}, {"noembed", NOEMBED}, {"noframes", NOFRAMES}, {"noscript", NOSCRIPT},
    {"ol", BREAKOUT}, {"p", BREAKOUT}, {"plaintext", PLAINTEXT}, {"pre", BREAKOUT}, {"ruby", BREAKOUT},
    {"s", BREAKOUT}, {"script", SCRIPT}, {"section", CLOSER}, {"select", CLOSER}, {"small", BREAKOUT},
    {"span", BREAKOUT}, {"strike", BREAKOUT}, {"strong", BREAKOUT}, {"style", STYLE}, {"sub", BREAKOUT},
    {"summary", CLOSER}, {"sup", BREAKOUT}, {"svg", SVG}, {"table", BREAKOUT}, {"tbody", CLOSER}, {"td", CLOSER},
    {"template", TEMPLATE}, {"textarea", TEXTAREA}, {"tfoot", CLOSER}, {"th", CLOSER}, {"thead", CLOSER},
    {"title", TITLE}, {"tr", CLOSER}, {"tt", BREAKOUT}, {"u", BREAKOUT}, {"ul", BREAKOUT}, {"var", BREAKOUT},
    {"xmp", XMP},
};
#define TAG_COUNT (sizeof TAGS / sizeof TAGS[0])
#define LONGEST_NAME 14 /* annotation-xml */

/* Where names that begin with a letter start in TAGS; the table is in alphabetical order. */
static byte FIRST[27];

static void
fill_first(void)
{
    size_t at = 0;
    for (int letter = 0; letter < 26; letter++) {
        FIRST[letter] = (byte)at;
        while (at < TAG_COUNT && TAGS[at].name[0] == 'a' + letter) {
            at++;
        }
    }
    FIRST[26] = (byte)at;
}

static enum Tag
tag_of(const byte *name, size_t length)
{
    if (length == 0 || length > LONGEST_NAME || !(KIND[name[0]] & LETTER)) {
        return OTHER;
    }
    int letter = lower(name[0]) - 'a';
    for (int i = FIRST[letter]; i < FIRST[letter + 1]; i++) {
        if (is_text(name, length, TAGS[i].name)) {
            return TAGS[i].tag;
        }
    }
    return OTHER;
}

/* Attributes are kept in slots. The names of a mask are those that a tag is asked for. */
enum Slot {
    HREF, DOWNLOAD, REL, HREFLANG, TYPE, NAME, PROPERTY, HTTP_EQUIV, CONTENT, CHARSET, LANG, SHADOWROOTMODE, ENCODING,
    COLOR, FACE, SIZE, SLOTS
};

static const char *const ATTRIBUTES[SLOTS] = {
    "href", "download", "rel", "hreflang", "type", "name", "property", "http-equiv", "content", "charset", "lang",
    "shadowrootmode", "encoding", "color", "face", "size",
};

#define BIT(slot) (1u << (slot))

static unsigned
wanted_of(enum Tag tag)
{
    switch (tag) {
    case A: case AREA: return BIT(HREF) | BIT(DOWNLOAD) | BIT(REL);
    case BASE: return BIT(HREF);
    case LINK: return BIT(HREF) | BIT(REL) | BIT(HREFLANG) | BIT(TYPE);
    case META: return BIT(NAME) | BIT(PROPERTY) | BIT(HTTP_EQUIV) | BIT(CONTENT) | BIT(CHARSET);
    case HTML: return BIT(LANG);
    case TEMPLATE: return BIT(SHADOWROOTMODE);
    case ANNOTATION_XML: return BIT(ENCODING);
    case FONT: return BIT(COLOR) | BIT(FACE) | BIT(SIZE);
    default: return 0;
    }
}

/* --- addresses seen --------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t hash; /* never 0 where taken */
    Slice address;
    int32_t number; /* its place among the addresses that are kept; -1: it was left out */
    int32_t uses;   /* links that were reported with it */
} Entry;

typedef struct Chunk {
    struct Chunk *next;
    size_t used, room;
    byte text[];
} Chunk;

typedef struct {
    Entry *entries;
    size_t room, taken; /* room is a power of two */
    Chunk *chunks;      /* copies of addresses that are not written so in the input */
} Seen;

/* A number modulo 2^61 - 1. */
#define PRIME ((UINT64_C(1) << 61) - 1)

/* Links with one address that are reported; the first ones say most of it. */
#define MOST_USES 4
#define LONGEST_REL 512 /* bytes as written */
#define MOST_DIGITS 7   /* of a page's number */
#define LONGEST_WORD 16 /* bytes of a word for a page */

/* Set in the hash of what is only the beginning of an address, so that it is never the same as a whole one. */
#define CUT (UINT64_C(1) << 62)

static uint64_t
times(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

/* The text as a polynomial over its pieces of seven bytes, taken at a secret point: whoever does not know the point
 * cannot write two texts that are more likely to collide than by chance. */
static uint64_t
hash_of(Slice text, const uint64_t key[2])
{
    uint64_t hash = text.length % PRIME;
    const byte *at = text.text;
    size_t left = text.length;
    while (left > 0) {
        size_t size = left < 7 ? left : 7;
        uint64_t piece = 0;
        memcpy(&piece, at, size);
#if PY_BIG_ENDIAN
        piece >>= 8;
#endif
        hash = times(hash, key[0]) + piece;
        hash = hash >= PRIME ? hash - PRIME : hash;
        at += size;
        left -= size;
    }
    hash = times(hash, key[1]);
    return (hash ^ (hash >> 31)) | (UINT64_C(1) << 63);
}

static Entry *
place_of(Entry *entries, size_t room, uint64_t hash, Slice address)
{
    size_t at = hash & (room - 1);
    while (entries[at].hash != 0) {
        if (entries[at].hash == hash && entries[at].address.length == address.length &&
            memcmp(entries[at].address.text, address.text, address.length) == 0) {
            break;
        }
        at = (at + 1) & (room - 1);
    }
    return &entries[at];
}

static int
grow(Seen *seen)
{
    size_t room = seen->room ? seen->room * 2 : 256;
    Entry *entries = PyMem_Calloc(room, sizeof *entries);
    if (entries == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < seen->room; i++) {
        if (seen->entries[i].hash != 0) {
            *place_of(entries, room, seen->entries[i].hash, seen->entries[i].address) = seen->entries[i];
        }
    }
    PyMem_Free(seen->entries);
    seen->entries = entries;
    seen->room = room;
    return 0;
}

/* A copy that stays where it is until the scan is over. */
static int
keep(Seen *seen, Slice *text)
{
    Chunk *chunk = seen->chunks;
    if (chunk == NULL || chunk->room - chunk->used < text->length) {
        size_t room = text->length > 16384 ? text->length : 16384;
        chunk = PyMem_Malloc(sizeof *chunk + room);
        if (chunk == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        chunk->next = seen->chunks;
        chunk->used = 0;
        chunk->room = room;
        seen->chunks = chunk;
    }
    memcpy(chunk->text + chunk->used, text->text, text->length);
    text->text = chunk->text + chunk->used;
    chunk->used += text->length;
    return 0;
}

static void
forget(Seen *seen)
{
    while (seen->chunks != NULL) {
        Chunk *next = seen->chunks->next;
        PyMem_Free(seen->chunks);
        seen->chunks = next;
    }
    PyMem_Free(seen->entries);
}

/* --- a scan ----------------------------------------------------------------------------------------------------- */

typedef struct {
    byte *text;
    size_t room;
} Buffer;

typedef struct {
    const byte *data, *end;
    int is_xml;
    Py_ssize_t most, longest_address, longest_value, most_elements, longest_text;
    unsigned reported[HTML + 1]; /* by tag: is it asked for? */
    PyObject *refresh, *in_attribute;
    const uint64_t *key;

    Slice title, base, canonical; /* text is NULL where there is none */
    const byte *heading, *heading_end; /* the content of the first `<h1>`; NULL: there is none, or it is open */
    PyObject *addresses, *elements;
    PyObject *links; /* NULL: they are not asked for */
    PyObject *numbered, *marked; /* numbers of addresses: may be pages of lists; rel=next. NULL: not asked for */
    PyObject *list_words;
    Py_ssize_t left_out;
    Seen seen;
    Entry *added; /* of the address that was just added; valid until the next one is */

    Py_ssize_t open_link; /* the number of the address whose link is open; -1: none is */
    const byte *content;  /* of that link */
    PyObject *open_rel;

    byte *frames;
    size_t frame_count, frame_room, open_svg, open_math;
    size_t templates, frames_at_template;

    byte *text; /* the text that is shown, as written, `longest_text` bytes at the most */
    Py_ssize_t text_length, noscript_at; /* noscript_at: its length where a `<noscript>` began; -1: in none */

    Buffer resolved, cleaned;
    PyObject *held; /* what `resolved` came from, where Python made it */
} Scan;

typedef struct {
    Slice value[SLOTS];
    unsigned set; /* bits of the slots that are there */
    int is_closed;
} Values;

static int
make_room(Buffer *buffer, size_t size)
{
    if (buffer->room < size) {
        byte *text = PyMem_Realloc(buffer->text, size + size / 2);
        if (text == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        buffer->text = text;
        buffer->room = size + size / 2;
    }
    return 0;
}

/* A value with every reference resolved by Python, which knows all their names. */
static int
resolve_in_python(Scan *scan, Slice *value)
{
    PyObject *bytes =
        PyObject_CallFunction(scan->in_attribute, "y#", (const char *)value->text, (Py_ssize_t)value->length);
    if (bytes == NULL) {
        return -1;
    }
    if (!PyBytes_Check(bytes)) {
        Py_DECREF(bytes);
        PyErr_SetString(PyExc_TypeError, "references resolve to bytes");
        return -1;
    }
    Py_XSETREF(scan->held, bytes);
    value->text = (const byte *)PyBytes_AS_STRING(bytes);
    value->length = (size_t)PyBytes_GET_SIZE(bytes);
    return 0;
}

/* The length of a reference that needs no table, and its character; 0: no reference; -1: Python must look. */
static int
plain_reference(const byte *at, const byte *end, byte *character)
{
    static const struct {
        const char *text;
        byte character;
    } PLAIN[] = {{"&amp;", '&'}, {"&quot;", '"'}, {"&lt;", '<'}, {"&gt;", '>'}};
    for (size_t i = 0; i < sizeof PLAIN / sizeof PLAIN[0]; i++) {
        size_t length = strlen(PLAIN[i].text);
        if (starts_with(at, end, PLAIN[i].text, length)) {
            *character = PLAIN[i].character;
            return (int)length;
        }
    }
    const byte *after = at + 1;
    if (after < end && *after == '#') {
        return -1;
    }
    while (after < end && KIND[*after] & (LETTER | DIGIT)) {
        after++;
    }
    /* `&` alone, or `&name=` of a query: neither is a reference. */
    return after == at + 1 || (after < end && *after == '=') ? 0 : -1;
}

static Slice
cut(Slice value, Py_ssize_t longest)
{
    value.length = value.length > (size_t)longest ? (size_t)longest : value.length;
    return value;
}

/* A value, cut, with its references resolved and U+FFFD for NULs. It is valid until the next one is resolved. */
static int
resolve(Scan *scan, Slice *value)
{
    *value = cut(*value, scan->longest_value);
    const byte *at = value->text, *end = at + value->length;
    if (memchr(at, '&', value->length) == NULL && memchr(at, 0, value->length) == NULL) {
        return 0;
    }
    if (make_room(&scan->resolved, value->length * 3) < 0) {
        return -1;
    }
    byte *out = scan->resolved.text;
    while (at < end) {
        if (*at == 0) {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
            at++;
            continue;
        }
        if (*at == '&') {
            byte character;
            int length = plain_reference(at, end, &character);
            if (length < 0) {
                return resolve_in_python(scan, value);
            }
            if (length > 0) {
                *out++ = character;
                at += length;
                continue;
            }
        }
        *out++ = *at++;
    }
    value->text = scan->resolved.text;
    value->length = (size_t)(out - scan->resolved.text);
    return 0;
}

static PyObject *
text_of(Scan *scan, Slice value)
{
    if (resolve(scan, &value) < 0) {
        return NULL;
    }
    return PyUnicode_DecodeUTF8((const char *)value.text, (Py_ssize_t)value.length, "replace");
}

/* --- addresses -------------------------------------------------------------------------------------------------- */

static int
has_foreign_scheme(Slice address)
{
    size_t at = 0;
    if (address.length == 0 || !(KIND[address.text[0]] & LETTER)) {
        return 0;
    }
    while (at < address.length && (KIND[address.text[at]] & (LETTER | DIGIT) || address.text[at] == '+' ||
                                   address.text[at] == '-' || address.text[at] == '.')) {
        at++;
    }
    if (at == address.length || address.text[at] != ':') {
        return 0;
    }
    return !is_text(address.text, at, "http") && !is_text(address.text, at, "https");
}

/* An href made an address, in place where nothing is to be taken out: stripped, no tabs or newlines, no fragment.
 * Returns 1 if a fragment followed it, 0 if not, -1 on an error. */
static int
clean(Scan *scan, Slice *href)
{
    const byte *at = href->text, *end = at + href->length;
    while (at < end && *at <= 0x20) {
        at++;
    }
    while (end > at && end[-1] <= 0x20) {
        end--;
    }
    int is_plain = 1;
    const byte *fragment = end;
    for (const byte *c = at; c < end; c++) {
        if (*c == '#') {
            fragment = c;
            break;
        }
        if (*c == '\t' || *c == '\n' || *c == '\r') {
            is_plain = 0;
        }
    }
    /* A space before the fragment is part of the address. It would be stripped later unless it is escaped. */
    int is_spaced = fragment < end && fragment > at && fragment[-1] <= 0x20;
    href->text = at;
    href->length = (size_t)(fragment - at);
    if (is_plain && !is_spaced) {
        return fragment < end;
    }
    if (make_room(&scan->cleaned, href->length * 3) < 0) {
        return -1;
    }
    byte *out = scan->cleaned.text;
    for (const byte *c = at; c < fragment; c++) {
        if (*c != '\t' && *c != '\n' && *c != '\r') {
            *out++ = *c;
        }
    }
    if (fragment < end) {
        size_t kept = (size_t)(out - scan->cleaned.text), spaces = 0;
        while (spaces < kept && scan->cleaned.text[kept - 1 - spaces] <= 0x20) {
            spaces++;
        }
        for (size_t i = spaces; i-- > 0;) { /* the last first: what is written is never what is still to be read */
            byte space = scan->cleaned.text[kept - spaces + i];
            byte *to = scan->cleaned.text + kept - spaces + 3 * i;
            to[0] = '%';
            to[1] = (byte)"0123456789ABCDEF"[space >> 4];
            to[2] = (byte)"0123456789ABCDEF"[space & 15];
        }
        out += 2 * spaces;
    }
    href->text = scan->cleaned.text;
    href->length = (size_t)(out - scan->cleaned.text);
    return fragment < end;
}

static int
append_number(PyObject *list, Py_ssize_t number)
{
    PyObject *value = PyLong_FromSsize_t(number);
    if (value == NULL) {
        return -1;
    }
    int failed = PyList_Append(list, value);
    Py_DECREF(value);
    return failed;
}

static int
is_digit(byte c)
{
    return c >= '0' && c <= '9';
}

/* Is a name among the words that name the pages of lists? Digits at its end do not count. */
static int
is_list_word(Scan *scan, const byte *name, size_t length)
{
    char word[LONGEST_WORD];
    while (length > 0 && is_digit(name[length - 1])) {
        length--;
    }
    if (length == 0 || length > LONGEST_WORD) {
        return 0;
    }
    for (size_t i = 0; i < length; i++) {
        byte c = lower(name[i]);
        if (c != '_' && (c < 'a' || c > 'z')) {
            return 0;
        }
        word[i] = (char)c;
    }
    PyObject *text = PyUnicode_FromStringAndSize(word, (Py_ssize_t)length);
    int found = text == NULL ? -1 : PySet_Contains(scan->list_words, text);
    Py_XDECREF(text);
    return found;
}

/* Has a query a parameter with a word for a page, and a number? */
static int
is_numbered_query(Scan *scan, const byte *at, const byte *end)
{
    while (at < end) {
        const byte *part_end = memchr(at, '&', (size_t)(end - at));
        part_end = part_end == NULL ? end : part_end;
        const byte *number = part_end;
        while (number > at && is_digit(number[-1])) {
            number--;
        }
        size_t digits = (size_t)(part_end - number);
        if (digits >= 1 && digits <= MOST_DIGITS && number > at && number[-1] == '=') {
            int found = is_list_word(scan, at, (size_t)(number - 1 - at));
            if (found != 0) {
                return found;
            }
        }
        at = part_end + 1;
    }
    return 0;
}

/* Ends a path with a number that a word for a page names, or is it nothing but a number? */
static int
is_numbered_path(Scan *scan, const byte *start, const byte *end)
{
    if (end > start && end[-1] == '/') {
        end--;
    }
    static const char *const SUFFIXES[] = {".html", ".htm", ".php"};
    const byte *after = end;
    for (int i = 0; i < 3 && after == end; i++) {
        size_t length = strlen(SUFFIXES[i]);
        if ((size_t)(end - start) > length && is_text(end - length, length, SUFFIXES[i])) {
            after = end - length;
        }
    }
    const byte *number = after;
    while (number > start && is_digit(number[-1])) {
        number--;
    }
    size_t digits = (size_t)(after - number), before = (size_t)(number - start);
    if (digits == 0 || digits > MOST_DIGITS) {
        return 0;
    }
    if (before == 0 || (before == 2 && memcmp(start, "./", 2) == 0) || (before == 3 && memcmp(start, "../", 3) == 0)) {
        return 1;
    }
    const byte *word_end = number[-1] == '/' || number[-1] == '_' || number[-1] == '-' ? number - 1 : number;
    const byte *word = word_end;
    while (word > start && word[-1] != '/') {
        word--;
    }
    return is_list_word(scan, word, (size_t)(word_end - word));
}

static int
may_be_numbered(Scan *scan, Slice address)
{
    const byte *start = address.text, *end = start + address.length;
    const byte *query = memchr(start, '?', address.length);
    int found = query == NULL ? 0 : is_numbered_query(scan, query + 1, end);
    return found != 0 ? found : is_numbered_path(scan, start, query == NULL ? end : query);
}

static int
add_address(Scan *scan, Slice href, int is_cut)
{
    scan->added = NULL;
    int has_fragment = clean(scan, &href);
    if (has_fragment < 0) {
        return -1;
    }
    if (href.length == 0 || has_foreign_scheme(href)) {
        return 0;
    }
    Seen *seen = &scan->seen;
    if (seen->taken * 4 >= seen->room * 3 && grow(seen) < 0) {
        return -1;
    }
    is_cut = is_cut && !has_fragment;
    uint64_t hash = hash_of(href, scan->key) | (is_cut ? CUT : 0);
    Entry *entry = place_of(seen->entries, seen->room, hash, href);
    if (entry->hash != 0) {
        scan->added = entry;
        return 0;
    }
    int is_kept = !is_cut && PyList_GET_SIZE(scan->addresses) < scan->most &&
                  href.length <= (size_t)scan->longest_address;
    if (is_kept) {
        PyObject *text = PyUnicode_DecodeUTF8((const char *)href.text, (Py_ssize_t)href.length, "replace");
        if (text == NULL) {
            return -1;
        }
        int failed = PyList_Append(scan->addresses, text);
        Py_DECREF(text);
        if (!failed && scan->numbered != NULL) {
            int is_numbered = may_be_numbered(scan, href);
            failed = is_numbered <= 0 ? is_numbered
                                      : append_number(scan->numbered, PyList_GET_SIZE(scan->addresses) - 1);
        }
        if (failed) {
            return -1;
        }
    } else {
        scan->left_out++;
    }
    uintptr_t place = (uintptr_t)href.text;
    int is_in_input = place >= (uintptr_t)scan->data && place < (uintptr_t)scan->end;
    if (!is_in_input && keep(seen, &href) < 0) {
        return -1;
    }
    entry->hash = hash;
    entry->address = href;
    entry->number = is_kept ? (int32_t)(PyList_GET_SIZE(scan->addresses) - 1) : -1;
    seen->taken++;
    scan->added = entry;
    return 0;
}

static int
add_href(Scan *scan, Slice href)
{
    int is_cut = href.length > (size_t)scan->longest_value;
    return resolve(scan, &href) < 0 ? -1 : add_address(scan, href, is_cut);
}

/* --- elements --------------------------------------------------------------------------------------------------- */

static int
report(Scan *scan, const byte *start, enum Tag tag, const Values *values)
{
    static const char *const NAMES[] = {NULL, "a", "area", "base", "link", "meta", "html"};
    if (tag > HTML || !scan->reported[tag] || values->set == 0 ||
        PyList_GET_SIZE(scan->elements) >= scan->most_elements) {
        return 0;
    }
    PyObject *attributes = PyDict_New();
    for (int slot = 0; attributes != NULL && slot < SLOTS; slot++) {
        if (values->set & BIT(slot)) {
            PyObject *text = text_of(scan, values->value[slot]);
            if (text == NULL || PyDict_SetItemString(attributes, ATTRIBUTES[slot], text) < 0) {
                Py_CLEAR(attributes);
            }
            Py_XDECREF(text);
        }
    }
    if (attributes == NULL) {
        return -1;
    }
    PyObject *element = Py_BuildValue("(nsN)", (Py_ssize_t)(start - scan->data), NAMES[tag], attributes);
    if (element == NULL) {
        return -1;
    }
    int failed = PyList_Append(scan->elements, element);
    Py_DECREF(element);
    return failed;
}

/* Begins a link to the address that was just added, if links are asked for. */
static int
begin_link(Scan *scan, const byte *content, const Values *values)
{
    Entry *entry = scan->added;
    if (scan->links == NULL || entry == NULL || entry->number < 0 || entry->uses >= MOST_USES) {
        return 0;
    }
    entry->uses++;
    PyObject *rel = values->set & BIT(REL) ? text_of(scan, cut(values->value[REL], LONGEST_REL)) : Py_NewRef(Py_None);
    if (rel == NULL) {
        return -1;
    }
    Py_XSETREF(scan->open_rel, rel);
    scan->open_link = entry->number;
    scan->content = content;
    return 0;
}

/* Ends the link that is open, if one is: its content ends here. */
static int
end_link(Scan *scan, const byte *end)
{
    if (scan->open_link < 0) {
        return 0;
    }
    PyObject *link = Py_BuildValue("(nnnO)", scan->open_link, (Py_ssize_t)(scan->content - scan->data),
                                   (Py_ssize_t)(end - scan->data), scan->open_rel);
    scan->open_link = -1;
    if (link == NULL) {
        return -1;
    }
    int failed = PyList_Append(scan->links, link);
    Py_DECREF(link);
    return failed;
}

/* Is a word among those of a value, which spaces part? */
static int
has_word(Scan *scan, Slice value, const char *word)
{
    if (resolve(scan, &value) < 0) {
        return -1;
    }
    const byte *at = value.text, *end = at + value.length;
    while (at < end) {
        while (at < end && KIND[*at] & SPACE) {
            at++;
        }
        const byte *start = at;
        while (at < end && !(KIND[*at] & SPACE)) {
            at++;
        }
        if (is_text(start, (size_t)(at - start), word)) {
            return 1;
        }
    }
    return 0;
}

/* Notes that the address that was just added is marked with rel=next, if that is asked for. */
static int
mark_next(Scan *scan, const Values *values)
{
    if (scan->marked == NULL || !(values->set & BIT(REL)) || scan->added == NULL || scan->added->number < 0) {
        return 0;
    }
    Py_ssize_t number = scan->added->number; /* resolving the rel adds no address */
    int is_next = has_word(scan, values->value[REL], "next");
    return is_next <= 0 ? is_next : append_number(scan->marked, number);
}

/* An `<a>` whose content begins at a place, or which has none. A link inside of another one ends that. */
static int
anchor(Scan *scan, const byte *start, const Values *values, const byte *content, int has_no_content)
{
    if (scan->templates) {
        return 0;
    }
    if (end_link(scan, start) < 0) {
        return -1;
    }
    if ((values->set & (BIT(HREF) | BIT(DOWNLOAD))) == BIT(HREF)) {
        if (add_href(scan, values->value[HREF]) < 0 || mark_next(scan, values) < 0 ||
            begin_link(scan, content, values) < 0) {
            return -1;
        }
        if (has_no_content && end_link(scan, content) < 0) {
            return -1;
        }
    }
    return report(scan, start, A, values);
}

static int
link_element(Scan *scan, const byte *start, const Values *values)
{
    if ((values->set & (BIT(HREF) | BIT(REL))) != (BIT(HREF) | BIT(REL))) {
        return 0;
    }
    int is_page = has_word(scan, values->value[REL], "canonical");
    if (is_page > 0 && scan->canonical.text == NULL) {
        scan->canonical = cut(values->value[HREF], scan->longest_value);
    }
    if (is_page == 0) {
        is_page = has_word(scan, values->value[REL], "next");
    }
    if (is_page <= 0) {
        return is_page;
    }
    if (end_link(scan, start) < 0 || add_href(scan, values->value[HREF]) < 0 || mark_next(scan, values) < 0) {
        return -1;
    }
    return begin_link(scan, start, values) < 0 ? -1 : end_link(scan, start);
}

static int
refresh_element(Scan *scan, const Values *values)
{
    if ((values->set & (BIT(HTTP_EQUIV) | BIT(CONTENT))) != (BIT(HTTP_EQUIV) | BIT(CONTENT)) ||
        values->value[CONTENT].length == 0) {
        return 0;
    }
    Slice kind = values->value[HTTP_EQUIV];
    if (resolve(scan, &kind) < 0) {
        return -1;
    }
    while (kind.length > 0 && KIND[kind.text[0]] & SPACE) {
        kind.text++;
        kind.length--;
    }
    while (kind.length > 0 && KIND[kind.text[kind.length - 1]] & SPACE) {
        kind.length--;
    }
    if (!is_text(kind.text, kind.length, "refresh")) {
        return 0;
    }
    PyObject *content = text_of(scan, values->value[CONTENT]);
    PyObject *target = content == NULL ? NULL : PyObject_CallOneArg(scan->refresh, content);
    Py_XDECREF(content);
    if (target == NULL || target == Py_None) {
        Py_XDECREF(target);
        return target == NULL ? -1 : 0;
    }
    PyObject *encoded = PyUnicode_AsEncodedString(target, "utf-8", "replace");
    Py_DECREF(target);
    if (encoded == NULL) {
        return -1;
    }
    Slice href = {(const byte *)PyBytes_AS_STRING(encoded), (size_t)PyBytes_GET_SIZE(encoded)};
    int failed = add_address(scan, href, 0);
    Py_DECREF(encoded);
    return failed;
}

static int
document_element(Scan *scan, const byte *start, enum Tag tag, const Values *values)
{
    int failed = 0;
    if (tag == BASE) {
        if (scan->base.text == NULL && values->set & BIT(HREF)) {
            scan->base = cut(values->value[HREF], scan->longest_value);
        }
    } else if (tag == LINK) {
        failed = link_element(scan, start, values);
    } else if (tag == META) {
        failed = refresh_element(scan, values);
    }
    return failed < 0 ? -1 : report(scan, start, tag, values);
}

/* --- foreign content -------------------------------------------------------------------------------------------- */

static int
push(Scan *scan, enum Tag tag)
{
    if (scan->frame_count == scan->frame_room) {
        size_t room = scan->frame_room ? scan->frame_room * 2 : 64;
        byte *frames = PyMem_Realloc(scan->frames, room);
        if (frames == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        scan->frames = frames;
        scan->frame_room = room;
    }
    scan->frames[scan->frame_count++] = (byte)tag;
    scan->open_svg += tag == SVG;
    scan->open_math += tag == MATH;
    return 0;
}

static enum Tag
pop(Scan *scan)
{
    enum Tag tag = (enum Tag)scan->frames[--scan->frame_count];
    scan->open_svg -= tag == SVG;
    scan->open_math -= tag == MATH;
    return tag;
}

static enum Tag
top(const Scan *scan)
{
    return scan->frame_count ? (enum Tag)scan->frames[scan->frame_count - 1] : OTHER;
}

static int
is_foreign(const Scan *scan)
{
    return top(scan) == SVG || top(scan) == MATH;
}

static void
leave_foreign(Scan *scan)
{
    while (is_foreign(scan)) {
        pop(scan);
    }
}

/* Is a value one of these two words? */
static int
is_either(Scan *scan, const Values *values, enum Slot slot, const char *one, const char *other)
{
    if (!(values->set & BIT(slot))) {
        return 0;
    }
    Slice value = values->value[slot];
    if (resolve(scan, &value) < 0) {
        return -1;
    }
    return is_text(value.text, value.length, one) || is_text(value.text, value.length, other);
}

static int
is_integration_point(Scan *scan, enum Tag tag, const Values *values)
{
    if (top(scan) == SVG) {
        return tag == FOREIGNOBJECT || tag == DESC || tag == TITLE;
    }
    if (tag == ANNOTATION_XML) {
        return is_either(scan, values, ENCODING, "text/html", "application/xhtml+xml");
    }
    return tag == MI || tag == MO || tag == MN || tag == MS || tag == MTEXT;
}

static int
foreign_element(Scan *scan, const byte *start, enum Tag tag, const Values *values, const byte *at)
{
    if (tag == A) {
        return anchor(scan, start, values, at, values->is_closed);
    }
    if (values->is_closed) {
        return 0;
    }
    int opens = tag == SVG || tag == MATH || is_integration_point(scan, tag, values);
    return opens <= 0 ? opens : push(scan, tag);
}

static void
close_element(Scan *scan, enum Tag tag)
{
    if (tag == SVG || tag == MATH) {
        if (tag == SVG ? scan->open_svg : scan->open_math) {
            while (pop(scan) != tag) {
            }
        }
    } else if (tag != OTHER && top(scan) == tag) {
        pop(scan);
    } else if (tag == BREAKOUT || tag == H1 || tag == CLOSER) {
        leave_foreign(scan);
    } else if (tag == TEMPLATE && scan->templates && --scan->templates == 0) {
        while (scan->frame_count > scan->frames_at_template) {
            pop(scan);
        }
    }
}

/* --- text that is shown ----------------------------------------------------------------------------------------- */

static inline int
is_blank(byte c)
{
    return KIND[c] & SPACE || c == '\v';
}

/* Add the text up to `to`, without the space around it, behind one blank. */
static void
add_text(Scan *scan, const byte *at, const byte *to)
{
    size_t room = (size_t)(scan->longest_text - scan->text_length);
    if (scan->templates || room == 0) {
        return;
    }
    while (at < to && is_blank(*at)) {
        at++;
    }
    if (at == to) {
        return;
    }
    while (is_blank(to[-1])) {
        to--;
    }
    if (scan->text_length) {
        scan->text[scan->text_length++] = ' ';
        room--;
    }
    size_t length = (size_t)(to - at) < room ? (size_t)(to - at) : room;
    memcpy(scan->text + scan->text_length, at, length);
    scan->text_length += (Py_ssize_t)length;
}

/* --- tags ------------------------------------------------------------------------------------------------------- */

static void
note(Values *values, unsigned wanted, const byte *name, size_t length, Slice value)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        if (wanted & BIT(slot) && is_text(name, length, ATTRIBUTES[slot])) {
            if (!(values->set & BIT(slot))) {
                values->set |= BIT(slot);
                values->value[slot] = value;
            }
            return;
        }
    }
}

/* The place behind a tag's `>`; NULL: the input ends first, and the tag is none. */
static const byte *
attributes(const byte *at, const byte *end, unsigned wanted, Values *values)
{
    for (;;) {
        const byte *separators = at;
        while (at < end && KIND[*at] & (SPACE | SLASH)) {
            at++;
        }
        if (at == end) {
            return NULL;
        }
        if (*at == '>') {
            values->is_closed = at > separators && at[-1] == '/';
            return at + 1;
        }
        const byte *name = at++; /* even a `=` can begin a name */
        while (at < end && !(KIND[*at] & (SPACE | SLASH | CLOSE | EQUALS))) {
            at++;
        }
        size_t length = (size_t)(at - name);
        Slice value = {at, 0};
        const byte *sign = at;
        while (sign < end && KIND[*sign] & SPACE) {
            sign++;
        }
        if (sign < end && *sign == '=') {
            at = sign + 1;
            while (at < end && KIND[*at] & SPACE) {
                at++;
            }
            if (at == end) {
                return NULL;
            }
            if (*at == '"' || *at == '\'') {
                const byte *quote = memchr(at + 1, *at, (size_t)(end - at - 1));
                if (quote == NULL) {
                    return NULL;
                }
                value.text = at + 1;
                value.length = (size_t)(quote - at - 1);
                at = quote + 1;
            } else {
                value.text = at;
                while (at < end && !(KIND[*at] & (SPACE | CLOSE))) {
                    at++;
                }
                value.length = (size_t)(at - value.text);
            }
        }
        if (wanted) {
            note(values, wanted, name, length, value);
        }
    }
}

/* The end of a tag's name; `*tag` is what it names. */
static const byte *
read_name(const Scan *scan, const byte *at, enum Tag *tag)
{
    const byte *name = at;
    while (at < scan->end && !(KIND[*at] & (SPACE | SLASH | CLOSE))) {
        if (scan->is_xml && *at == ':') {
            name = at + 1;
        }
        at++;
    }
    *tag = tag_of(name, (size_t)(at - name));
    return at;
}

static const byte *
behind_tag(const Scan *scan, const byte *at)
{
    Values values;
    values.set = 0;
    at = attributes(at, scan->end, 0, &values);
    return at == NULL ? scan->end : at;
}

/* The place behind a name in any case, with prefixes in XML; NULL: it is not here, or goes on. No `<` is passed over,
 * so that the next look begins behind all that this one saw. */
static const byte *
behind_name(const Scan *scan, const byte *at, const char *name)
{
    size_t length = strlen(name);
    if (scan->is_xml) {
        for (const byte *c = at; c < scan->end && !(KIND[*c] & (SPACE | SLASH | CLOSE)) && *c != '<'; c++) {
            at = *c == ':' ? c + 1 : at;
        }
    }
    int is_here = (size_t)(scan->end - at) > length && is_text(at, length, name) &&
                  KIND[at[length]] & (SPACE | SLASH | CLOSE);
    return is_here ? at + length : NULL;
}

/* Where a script's end tag begins, and the place behind its name. Inside `<!-- <script> -->` an end tag ends only the
 * inner script. */
static const byte *
script_end(const Scan *scan, const byte *at, const byte **after)
{
    const byte *end = scan->end;
    int is_escaped = 0, is_nested = 0;
    for (; at < end; at++) {
        if (*at == '<') {
            if (starts_with(at, end, "<!--", 4)) {
                is_escaped = 1;
                at++; /* its dashes may be those of a `-->` */
            } else if (end - at > 1 && at[1] == '/') {
                if ((*after = behind_name(scan, at + 2, "script")) != NULL) {
                    if (!is_nested) {
                        return at;
                    }
                    is_nested = 0;
                }
            } else if (is_escaped && behind_name(scan, at + 1, "script") != NULL) {
                is_nested = 1;
            }
        } else if (*at == '-' && starts_with(at, end, "-->", 3)) {
            is_escaped = is_nested = 0;
            at += 2;
        } else if (!is_escaped) {
            const byte *next = memchr(at, '<', (size_t)(end - at));
            if (next == NULL) {
                return end;
            }
            at = next - 1;
        }
    }
    return end;
}

static const byte *
raw_end(const Scan *scan, const byte *at, const char *name, const byte **after)
{
    const byte *end = scan->end;
    while (at < end && (at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        if (end - at > 1 && at[1] == '/' && (*after = behind_name(scan, at + 2, name)) != NULL) {
            return at;
        }
        at++;
    }
    return end;
}

static const byte *
raw_text(Scan *scan, const byte *at, enum Tag tag)
{
    static const char *const NAMES[] = {"title", "script", "style", "xmp", "iframe", "noembed", "noframes", "textarea"};
    const byte *after = scan->end;
    const byte *stop = tag == SCRIPT ? script_end(scan, at, &after) : raw_end(scan, at, NAMES[tag - TITLE], &after);
    if (tag == TITLE && scan->title.text == NULL && !scan->templates) {
        Slice title = {at, (size_t)(stop - at)};
        scan->title = cut(title, scan->longest_value);
    }
    return stop == scan->end ? stop : behind_tag(scan, after);
}

static int
open_template(Scan *scan, const Values *values)
{
    if (scan->templates) {
        scan->templates++;
        return 0;
    }
    int is_shown = is_either(scan, values, SHADOWROOTMODE, "open", "closed");
    if (is_shown == 0) {
        scan->templates = 1;
        scan->frames_at_template = scan->frame_count;
    }
    return is_shown < 0 ? -1 : 0;
}

/* A start tag where HTML is. Returns where to go on, NULL on an error. */
static const byte *
html_element(Scan *scan, const byte *start, enum Tag tag, const Values *values, const byte *at)
{
    int has_no_content = scan->is_xml && values->is_closed;
    int failed = 0;
    if (tag == A) {
        failed = anchor(scan, start, values, at, has_no_content);
    } else if (tag >= TITLE && tag <= TEXTAREA) {
        if (!has_no_content) {
            return raw_text(scan, at, tag);
        }
        if (tag == TITLE && scan->title.text == NULL && !scan->templates) {
            scan->title.text = at;
            scan->title.length = 0;
        }
    } else if (tag == SVG || tag == MATH) {
        failed = values->is_closed ? 0 : push(scan, tag);
    } else if (tag == TEMPLATE) {
        failed = has_no_content ? 0 : open_template(scan, values);
    } else if (tag == PLAINTEXT) {
        return scan->is_xml ? at : scan->end;
    } else if (tag == NOSCRIPT) {
        if (!has_no_content && !scan->templates && scan->noscript_at < 0) {
            scan->noscript_at = scan->text_length;
        }
    } else if (tag == H1) {
        if (scan->heading == NULL && !scan->templates) {
            scan->heading = at;
            scan->heading_end = has_no_content ? at : NULL;
        }
    } else if (!scan->templates && tag >= AREA && tag <= HTML) {
        failed = document_element(scan, start, tag, values);
    }
    return failed < 0 ? NULL : at;
}

static const byte *
start_tag(Scan *scan, const byte *start)
{
    enum Tag tag;
    Values values;
    values.set = 0;
    values.is_closed = 0;
    const byte *at = read_name(scan, start + 1, &tag);
    at = attributes(at, scan->end, wanted_of(tag), &values);
    if (at == NULL) {
        return scan->end;
    }
    if (tag == OTHER) {
        return at;
    }
    if (is_foreign(scan)) {
        if (tag != BREAKOUT && tag != H1 && tag != OPENER && tag != META && !(tag == FONT && values.set)) {
            return foreign_element(scan, start, tag, &values, at) < 0 ? NULL : at;
        }
        leave_foreign(scan);
    }
    return html_element(scan, start, tag, &values, at);
}

static const byte *
end_tag(Scan *scan, const byte *start)
{
    enum Tag tag;
    const byte *at = read_name(scan, start + 2, &tag);
    at = behind_tag(scan, at);
    if (tag == A && !scan->templates && end_link(scan, start) < 0) {
        return NULL;
    }
    if (tag == H1 && !scan->templates && scan->heading != NULL && scan->heading_end == NULL) {
        scan->heading_end = start;
    }
    if (tag == NOSCRIPT && scan->noscript_at >= 0 && (at < scan->end || scan->end[-1] == '>')) {
        scan->text_length = scan->noscript_at; /* browsers that run scripts do not show it */
        scan->noscript_at = -1;
    } else if (tag != OTHER && (scan->frame_count || scan->templates)) {
        close_element(scan, tag);
    }
    return at;
}

/* --- declarations ----------------------------------------------------------------------------------------------- */

static const byte *
comment(const Scan *scan, const byte *at)
{
    const byte *end = scan->end;
    if (scan->is_xml) {
        return behind(at + 4, end, "-->", 3);
    }
    if (starts_with(at + 4, end, ">", 1)) {
        return at + 5;
    }
    if (starts_with(at + 4, end, "->", 2)) {
        return at + 6;
    }
    const byte *text = at + 4, *close = text;
    while (close < end && (close = memchr(close, '>', (size_t)(end - close))) != NULL) {
        const byte *dash = close - text > 2 && close[-1] == '!' ? close - 1 : close;
        if (dash - text >= 2 && dash[-1] == '-' && dash[-2] == '-') {
            return close + 1;
        }
        close++;
    }
    return end;
}

/* A DOCTYPE of XML may hold declarations in brackets, which hold quotes, comments and instructions. */
static const byte *
xml_doctype(const byte *at, const byte *end)
{
    int is_inside = 0;
    while (at < end) {
        byte c = *at;
        if (c == '"' || c == '\'') {
            at = behind(at + 1, end, c == '"' ? "\"" : "'", 1);
        } else if (starts_with(at, end, "<!--", 4)) {
            at = behind(at + 4, end, "-->", 3);
        } else if (starts_with(at, end, "<?", 2)) {
            at = behind(at + 2, end, "?>", 2);
        } else if (c == '>' && !is_inside) {
            return at + 1;
        } else {
            is_inside = c == '[' ? 1 : c == ']' ? 0 : is_inside;
            at++;
        }
    }
    return end;
}

static const byte *
declaration(const Scan *scan, const byte *at)
{
    const byte *end = scan->end;
    if (starts_with(at, end, "<!--", 4)) {
        return comment(scan, at);
    }
    if (starts_with(at, end, "<![CDATA[", 9) && (scan->is_xml || scan->frame_count)) {
        return behind(at + 9, end, "]]>", 3);
    }
    return scan->is_xml ? xml_doctype(at + 2, end) : behind(at + 2, end, ">", 1);
}

/* --- the pass --------------------------------------------------------------------------------------------------- */

static int
run(Scan *scan)
{
    const byte *at = scan->data, *end = scan->end;
    while (at < end) {
        const byte *text = at;
        at = memchr(at, '<', (size_t)(end - at));
        add_text(scan, text, at == NULL ? end : at);
        if (at == NULL || end - at < 2) {
            break;
        }
        byte mark = at[1];
        if (KIND[mark] & LETTER) {
            at = start_tag(scan, at);
            if (at == NULL) {
                return -1;
            }
        } else if (mark == '/') {
            if (end - at < 3) {
                break;
            }
            at = KIND[at[2]] & LETTER ? end_tag(scan, at) : behind(at + 2, end, ">", 1);
            if (at == NULL) {
                return -1;
            }
        } else if (mark == '!') {
            at = declaration(scan, at);
        } else if (mark == '?') {
            at = scan->is_xml ? behind(at + 2, end, "?>", 2) : behind(at + 2, end, ">", 1);
        } else {
            at++;
        }
    }
    return end_link(scan, end);
}

static int
ask_for(Scan *scan, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (name == NULL) {
            return -1;
        }
        enum Tag tag = tag_of((const byte *)name, strlen(name));
        if (tag <= HTML && tag != OTHER && tag != BASE) {
            scan->reported[tag] = 1;
        }
    }
    return 0;
}

static PyObject *
bytes_or_none(Slice text)
{
    if (text.text == NULL) {
        return Py_NewRef(Py_None);
    }
    return PyBytes_FromStringAndSize((const char *)text.text, (Py_ssize_t)text.length);
}

static PyObject *
scan_pages(PyObject *module, PyObject *args)
{
    Py_buffer data;
    PyObject *names;
    Scan scan;
    int has_links;
    memset(&scan, 0, sizeof scan);
    scan.open_link = -1;
    if (!PyArg_ParseTuple(args, "y*npO!O(nnnn)pOO:scan", &data, &scan.most, &scan.is_xml, &PyTuple_Type, &names,
                          &scan.refresh, &scan.longest_address, &scan.longest_value, &scan.most_elements,
                          &scan.longest_text, &has_links, &scan.list_words, &scan.in_attribute)) {
        return NULL;
    }
    PyObject *found = NULL;
    scan.data = data.len ? data.buf : (const byte *)"";
    scan.end = scan.data + data.len;
    scan.key = PyModule_GetState(module);
    if (scan.longest_text > data.len) {
        scan.longest_text = data.len; /* a page has no more: a blank that is put in stood for a tag */
    }
    scan.noscript_at = -1;
    scan.text = PyMem_Malloc((size_t)scan.longest_text + 1);
    scan.addresses = PyList_New(0);
    scan.elements = PyList_New(0);
    PyObject *links = PyList_New(0), *numbered = PyList_New(0), *marked = PyList_New(0);
    scan.links = has_links ? links : NULL;
    int has_lists = scan.list_words != Py_None;
    scan.numbered = has_lists ? numbered : NULL;
    scan.marked = has_lists ? marked : NULL;
    if (scan.text == NULL) {
        PyErr_NoMemory();
    } else if (scan.addresses != NULL && scan.elements != NULL && links != NULL && numbered != NULL && marked != NULL &&
               ask_for(&scan, names) == 0 && run(&scan) == 0) {
        PyObject *title = bytes_or_none(scan.title), *base = bytes_or_none(scan.base);
        PyObject *canonical = bytes_or_none(scan.canonical);
        const byte *heading_end = scan.heading_end == NULL ? scan.end : scan.heading_end;
        Py_ssize_t from = scan.heading == NULL ? -1 : (Py_ssize_t)(scan.heading - scan.data);
        Py_ssize_t to = scan.heading == NULL ? -1 : (Py_ssize_t)(heading_end - scan.data);
        if (title != NULL && base != NULL && canonical != NULL) {
            found = Py_BuildValue("(OOOnOy#OOOO(nn))", title, base, scan.addresses, scan.left_out, scan.elements,
                                  scan.text, scan.text_length, links, numbered, marked, canonical, from, to);
        }
        Py_XDECREF(canonical);
        Py_XDECREF(title);
        Py_XDECREF(base);
    }
    Py_XDECREF(scan.addresses);
    Py_XDECREF(scan.elements);
    Py_XDECREF(links);
    Py_XDECREF(numbered);
    Py_XDECREF(marked);
    Py_XDECREF(scan.open_rel);
    Py_XDECREF(scan.held);
    forget(&scan.seen);
    PyMem_Free(scan.text);
    PyMem_Free(scan.frames);
    PyMem_Free(scan.resolved.text);
    PyMem_Free(scan.cleaned.text);
    PyBuffer_Release(&data);
    return found;
}

/* --- the module ------------------------------------------------------------------------------------------------- */

static int
prepare(PyObject *module)
{
    fill_kinds();
    fill_first();
    uint64_t *key = PyModule_GetState(module);
    PyObject *os = PyImport_ImportModule("os");
    PyObject *secret = os == NULL ? NULL : PyObject_CallMethod(os, "urandom", "i", 16);
    Py_XDECREF(os);
    if (secret == NULL || !PyBytes_Check(secret) || PyBytes_GET_SIZE(secret) != 16) {
        Py_XDECREF(secret);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "no secret for hashes");
        }
        return -1;
    }
    memcpy(key, PyBytes_AS_STRING(secret), 16);
    Py_DECREF(secret);
    for (int i = 0; i < 2; i++) {
        key[i] = key[i] % (PRIME - 2) + 2;
    }
    return PyModule_AddIntConstant(module, "CONTRACT", 5);
}

static PyMethodDef METHODS[] = {
    {"scan", scan_pages, METH_VARARGS, "As pure_scanner.scan; the last argument resolves references."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS_OF_MODULE[] = {
    {Py_mod_exec, prepare},
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_scanner",
    .m_doc = "The compiled scanner; see scanner.py.",
    .m_size = 2 * sizeof(uint64_t),
    .m_methods = METHODS,
    .m_slots = SLOTS_OF_MODULE,
};

PyMODINIT_FUNC
PyInit__scanner(void)
{
    return PyModuleDef_Init(&MODULE);
}
