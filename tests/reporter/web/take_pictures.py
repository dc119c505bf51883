"""Takes the pictures of README and docs from the demo, crawled twice: `make pictures`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.places import ROOT
from tests.reporter.web.face_browser import Demo, Watched, base_of, browser, missing

PICTURES = {  # name → address, colour scheme, width, domain that is selected on the map
    "face-dashboard": ("/", "light", 1280, ""),
    "face-map": ("/map", "light", 1280, "moss-notes.test"),
    "face-map-dark": ("/map?level=paths&url=https://tea-almanac.test/brewing", "dark", 1280, ""),
    "face-curation": ("/curation", "light", 1280, ""),
    "face-page-phone": ("/page?url=https://tea-almanac.test/brewing", "dark", 390, ""),
}


def main() -> int:
    if (lacking := missing()) is not None:
        print(f"{lacking}: `make test-web` installs what it needs", file=sys.stderr)
        return 1
    with TemporaryDirectory(prefix="sumi-pictures-") as folder:
        demo = Demo(Path(folder))
        demo.crawled()
        demo.crawled()
        with demo.served() as link, browser() as chromium:
            context = chromium.new_context(reduced_motion="reduce")
            face = Watched(context, base_of(link))
            face.page.goto(link)
            for name, (path, scheme, width, selected) in PICTURES.items():
                face.page.set_viewport_size({"width": width, "height": 800})
                face.page.emulate_media(color_scheme=scheme)
                face.open(path)
                if selected:
                    face.until("globalThis.sumiRippleMap")
                    face.page.evaluate(
                        f"sumiRippleMap.select(sumiRippleLevel.nodes.name.indexOf({selected!r}), {{isRevealed: false}})"
                    )
                face.page.wait_for_load_state("load")
                face.page.wait_for_timeout(800)  # the stream's first figures, and a frame of the canvas
                target = ROOT / "docs" / "pictures" / f"{name}.png"
                face.page.screenshot(path=target)
                print(target.relative_to(ROOT))
            assert not face.complaints and not face.foreign, (face.complaints, face.foreign)
    return 0


if __name__ == "__main__":
    sys.exit(main())
