"""PURE. The signs of garbage, as data: every row names the public source that describes it.

A row is a fact about pages of one kind, and never enough by itself: `validation` says which rows count on which pages.
Texts are in lower case, with plain apostrophes and single spaces. Markup is as its provider writes it.
"""

from __future__ import annotations

from typing import NamedTuple


class HeaderProof(NamedTuple):
    """A header that only a challenge or a block carries. No `values`: any will do. No `statuses`: with every status."""

    name: str
    header: str
    values: tuple[str, ...]
    statuses: tuple[int, ...]
    source: str


class Markup(NamedTuple):
    """Pieces of markup of a provider's challenge page, all of which occur in it, and together in no other."""

    name: str
    pieces: tuple[bytes, ...]
    source: str


class Words(NamedTuple):
    """Titles or phrases of one kind of page."""

    texts: tuple[str, ...]
    source: str


# -- hard: the site tests or refuses its visitors -------------------------------------------------------------

HEADER_PROOFS = (
    HeaderProof(
        *("cloudflare-challenge", "cf-mitigated", ("challenge",), ()),
        "developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response",
    ),
    HeaderProof(
        *("vercel-challenge", "x-vercel-mitigated", ("challenge", "deny"), ()),
        "vercel.com/docs/vercel-firewall; microlinkhq/is-antibot providers.json",
    ),
    HeaderProof(
        *("aws-waf-challenge", "x-amzn-waf-action", ("challenge", "captcha"), ()),
        "docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-actions.html",
    ),
    HeaderProof(  # `x-datadome: protected` and its cookie come with every answer and prove nothing
        *("datadome-challenge", "x-dd-b", ("1", "2"), (403, 405, 429)),
        "microlinkhq/is-antibot providers.json and test/index.js",
    ),
    HeaderProof(*("sucuri-block", "x-sucuri-block", (), ()), "urbanadventurer/WhatWeb plugins: Sucuri"),
    HeaderProof(*("siteground-challenge", "sg-captcha", ("challenge",), ()), "SiteGround: its 202 with a captcha"),
    HeaderProof(
        *("kasada-challenge", "x-kasada-challenge", (), (403, 429)), "microlinkhq/is-antibot providers.json: kasada"
    ),
)

MARKUP = (
    Markup(
        *("cloudflare-challenge", (b"_cf_chl_opt",)),
        "microlinkhq/is-antibot test/index.js: the interstitial's options; the beacon of ordinary pages has none",
    ),
    Markup(
        *("cloudflare-challenge", (b"/cdn-cgi/challenge-platform/h/", b"orchestrate")),
        "unclecode/crawl4ai tests/proxy/test_antibot_detector.py; ordinary pages load .../scripts/jsd/ instead",
    ),
    Markup(*("cloudflare-block", (b"cf-error-code", b"cf-wrapper")), "developers.cloudflare.com: 1xxx errors"),
    Markup(*("anubis-challenge", (b'id="anubis_challenge"',)), "TecharoHQ/anubis web/index.templ"),
    Markup(
        *("datadome-challenge", (b"captcha-delivery.com", b"'cid'")),
        "docs.datadome.co: the response page; unclecode/crawl4ai test_antibot_detector.py",
    ),
    Markup(  # the path alone is on ordinary pages too
        *("imperva-challenge", (b"/_Incapsula_Resource?", b"incident_id=")),
        "unclecode/crawl4ai test_antibot_detector.py: the frame with the incident's number",
    ),
    Markup(*("perimeterx-challenge", (b'id="px-captcha"',)), "docs.humansecurity.com: block page, custom template"),
    Markup(*("akamai-challenge", (b"sec-if-cpt-container",)), "Akamai Bot Manager: the container of its challenge"),
    Markup(
        *("aws-waf-challenge", (b"gokuProps", b"awsWafCookieDomainList")),
        "docs.aws.amazon.com/waf: the interstitial; ordinary pages load its token script without these",
    ),
    Markup(
        *("ddos-guard-challenge", (b"/.well-known/ddos-guard/js-challenge/",)),
        "mikf/gallery-dl util.py: detect_challenge",
    ),
    Markup(*("sucuri-challenge", (b"sucuri_cloudproxy_js",)), "codemanki/cloudscraper index.js"),
    Markup(*("siteground-challenge", (b"/.well-known/sgcaptcha/",)), "SiteGround: its meta refresh to the captcha"),
    Markup(
        *("cookie-challenge", (b"/aes.js", b"toNumbers(", b"__test=")),
        "kyprizel/testcookie-nginx-module doc; the wall of free hosting",
    ),
)

# Whole titles. They count with an error status, or with a phrase of BLOCK_PHRASES.
BLOCK_TITLES = (
    Words(("just a moment...", "attention required! | cloudflare"), "developers.cloudflare.com: challenge, block page"),
    Words(
        ("access denied", "pardon our interruption"), "techdocs.akamai.com; unclecode/crawl4ai test_antibot_detector"
    ),
    Words(("403 forbidden", "forbidden", "429 too many requests", "too many requests"), "nginx, Apache: error pages"),
    Words(("error: the request could not be satisfied",), "docs.aws.amazon.com/AmazonCloudFront: http-403"),
    Words(("vercel security checkpoint",), "microlinkhq/is-antibot test/index.js: vercel"),
    Words(("request rejected",), "BIG-IP ASM: its default response page"),
    Words(("making sure you're not a bot!",), "TecharoHQ/anubis lib/localization"),
    Words(("sorry...",), "apify/crawlee packages/utils blocked.ts: the page of Google"),
    Words(("access to this page has been denied", "you have been blocked"), "docs.humansecurity.com: block page"),
    Words(
        ("ddos-guard", "robot or human?", "are you a robot?", "security check required"), "crawl4ai antibot_detector"
    ),
)
BLOCK_PHRASES = (
    Words(("verify you are human", "verifying you are human", "checking your browser"), "Cloudflare, Akamai"),
    Words(("verifying your browser", "making sure you're not a bot"), "Vercel, Anubis"),
    Words(("your support id is", "the requested url was rejected"), "F5 BIG-IP ASM"),
    Words(("unusual traffic from your computer network",), "google.com/sorry"),
    Words(("blocked by network security",), "microlinkhq/is-antibot providers.json: reddit"),
    Words(
        ("request blocked", "you don't have permission to access", "sorry, you have been blocked"), "CloudFront, Akamai"
    ),
    Words(("needs to review the security of your connection", "press & hold to confirm"), "Cloudflare, PerimeterX"),
)
ERROR_PHRASES = (  # with 403, 429 or 503 only: pages with 2xx write about such things
    Words(("rate limit exceeded", "too many requests", "access denied", "403 forbidden"), "crawl4ai antibot_detector"),
)

# -- soft: nothing that could be kept -------------------------------------------------------------------------

MOUNT_NODES = (  # ids of the element that a page's scripts fill
    Words(("root", "app"), "create-react-app, Vue CLI and Vite: index.html of their templates"),
    Words(("__next", "__nuxt", "__layout", "___gatsby"), "Next.js, Nuxt, Gatsby"),
    Words(("react-root", "app-root", "root-app", "q-app", "svelte", "ember-app"), "Quasar, Svelte, Ember templates"),
)
MOUNT_ELEMENTS = (Words(("app-root",), "angular.dev: ng new"), Words(("flt-glass-pane",), "docs.flutter.dev/web"))

LOADING = (  # the beginning of all that a shell says
    Words(("loading", "please wait", "laden", "wird geladen", "chargement", "cargando", "caricamento"), "templates"),
)
NEEDS_SCRIPTS = (
    Words(
        (
            *(
                "enable javascript",
                "enable js",
                "javascript is required",
                "requires javascript",
                "javascript is disabled",
            ),
            *("javascript enabled", "without javascript", "javascript to run this app", "turn on javascript"),
            *("activate javascript", "javascript must be enabled", "need javascript", "needs javascript"),
        ),
        "create-react-app and Vue CLI templates; seed of this project",
    ),
    Words(("javascript aktivieren", "aktivieren sie javascript", "javascript ist deaktiviert"), "German sites"),
    Words(("activer javascript", "activez javascript", "javascript est désactivé"), "French sites"),
    Words(("active javascript", "habilite javascript", "habilitar javascript", "activar javascript"), "Spanish sites"),
)

PARKING_HOSTS = (  # hosts of scripts and frames
    Words(("sedoparking.com",), "sedo.com: parking"),
    Words(("parkingcrew.net", "parklogic.com", "bodis.com", "above.com"), "their embed codes"),
    Words(("dan.com", "hugedomains.com", "afternic.com", "undeveloped.com"), "landers of marketplaces"),
)
PARKING_SCRIPTS = (Words(('window.location.href="/lander"',), "GoDaddy: the only line of its parked pages"),)
PARKING_PHRASES = (  # two of them, or one under a title that is a domain
    Words(("domain is parked", "domain name is parked", "parked domain", "domain parking"), "GoDaddy, Namecheap"),
    Words(
        ("this domain is for sale", "buy this domain", "domain may be for sale", "domain name is for sale"), "Sedo, Dan"
    ),
    Words(("owner of this domain has not yet", "interested in this domain", "it may be for sale"), "registrars"),
    Words(("diese domain steht zum verkauf", "diese domain kaufen", "ce domaine est à vendre"), "Sedo"),
)

LOGIN_WORDS = (
    Words(("log in", "login", "log on", "sign in", "signin", "authentication required"), "common systems"),
    Words(
        ("anmelden", "einloggen", "connexion", "se connecter", "iniciar sesión", "accedi", "inloggen"), "common systems"
    ),
)

# A soft 404 has one of these as its title, or as a part of it between separators, and one of the phrases as well.
NOT_FOUND_TITLES = (
    Words(
        (
            *("page not found", "404", "404 not found", "not found", "error 404", "404 error", "404 - not found"),
            *(
                "page not found (404)",
                "404 page not found",
                "404: page not found",
                "404 - page not found",
                "not found (404)",
            ),
            *("file not found", "404 - file not found", "oops! page not found", "page does not exist", "nothing found"),
            *("the page cannot be found", "page unavailable", "404: not found", "oops, page not found"),
        ),
        "TeamHG-Memex/soft404; themes of WordPress, Drupal, Django, Hugo, Jekyll",
    ),
    Words(("seite nicht gefunden", "seite nicht vorhanden", "fehler 404"), "TYPO3, WordPress in German"),
    Words(("page non trouvée", "page introuvable", "erreur 404"), "WordPress in French"),
    Words(("página no encontrada", "pagina no encontrada", "error 404 - página no encontrada"), "WordPress in Spanish"),
    Words(("pagina non trovata", "página não encontrada", "pagina niet gevonden", "sidan hittades inte"), "WordPress"),
    Words(("страница не найдена", "nie znaleziono strony", "stránka nenalezena"), "WordPress"),
    Words(("ページが見つかりません", "页面未找到", "找不到页面", "페이지를 찾을 수 없습니다"), "WordPress"),
)
NOT_FOUND_PHRASES = (  # about a page: they count on a page with little text
    Words(
        (
            *("can't find the page", "couldn't find the page", "cannot find the page", "could not find the page"),
            *("page you are looking for", "page you were looking for", "page you're looking for", "page you requested"),
            *("requested page", "page does not exist", "page doesn't exist", "page could not be found", "no such page"),
            *(
                "page cannot be found",
                "page can't be found",
                "nothing was found at this location",
                "page was not found",
            ),
            *("requested url was not found", "page no longer exists", "page has been moved or deleted"),
        ),
        "TeamHG-Memex/soft404; themes of WordPress, Drupal, Django, Hugo, Jekyll",
    ),
    Words(("seite wurde nicht gefunden", "seite konnte nicht gefunden", "seite existiert nicht"), "German sites"),
    Words(("page n'existe pas", "page demandée", "page que vous recherchez", "page est introuvable"), "French sites"),
    Words(("página que busca", "página solicitada", "página no existe", "página não existe"), "es, pt"),
    Words(("pagina non esiste", "pagina che cerchi", "pagina bestaat niet", "sidan finns inte"), "it, nl, sv"),
    Words(("страница не существует", "запрашиваемая страница", "strona nie istnieje"), "ru, pl"),
    Words(("ページは見つかりません", "ページは存在しません", "页面不存在", "페이지를 찾을 수 없습니다"), "ja, zh, ko"),
)
MISSING_PHRASES = (  # about anything: they count on a thin page
    Words(
        ("does not exist", "doesn't exist", "no longer exists", "could not be found", "couldn't be found"), "as above"
    ),
    Words(("cannot be found", "can't be found", "was not found", "wasn't found", "may have been moved"), "as above"),
    Words(
        ("nicht gefunden", "existiert nicht", "n'existe pas", "est introuvable", "no existe", "não existe"), "as above"
    ),
    Words(("non esiste", "bestaat niet", "finns inte", "не существует", "nie istnieje", "見つかりません"), "as above"),
)


def texts_of(rows: tuple[Words, ...]) -> tuple[str, ...]:
    """All texts of a table."""
    return tuple(text for row in rows for text in row.texts)
