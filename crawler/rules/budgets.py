"""PURE. The request budget of a domain in one run: quality domains have one, all others another."""

from __future__ import annotations

from crawler.model.settings import Config, CrawlerSettings
from crawler.rules.lists import Classifier, DomainClass

_REQUESTS_A_PAGE = {"always": 2, "auto": 1, "never": 1}


def requests_a_page(settings: CrawlerSettings) -> int:
    """Requests that the visit of a page takes, at least: HEAD and GET, or GET alone."""
    return _REQUESTS_A_PAGE[settings.head_requests]


class Budgets:
    """The budgets of one config."""

    def __init__(self, config: Config) -> None:
        self._settings = config.crawler
        self._classify = Classifier(config).classify

    def of(self, domain: str) -> int:
        """Requests that may go to this domain in one run."""
        is_quality = self._classify(domain).klass is DomainClass.QUALITY
        return self._settings.budget(is_quality=is_quality)
