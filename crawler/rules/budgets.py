"""PURE. The request budget of a domain in one run: quality domains have one, all others another."""

from __future__ import annotations

from crawler.model.settings import Config
from crawler.rules.lists import Classifier, DomainClass


class Budgets:
    """The budgets of one config."""

    def __init__(self, config: Config) -> None:
        self._settings = config.crawler
        self._classify = Classifier(config).classify

    def of(self, domain: str) -> int:
        """Requests that may go to this domain in one run."""
        is_quality = self._classify(domain).klass is DomainClass.QUALITY
        return self._settings.budget(is_quality=is_quality)
