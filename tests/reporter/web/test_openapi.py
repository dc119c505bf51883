"""schemathesis over /openapi.json: whatever call is made up, the answer is a documented one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from reporter.web.routing import Role
from tests.reporter.web.serving import Served, make_rich_folder, served

if os.environ.get("TEST_WEB") != "1":
    pytest.skip("make test-web runs it", allow_module_level=True)
schemathesis = pytest.importorskip("schemathesis", reason="make test-web installs schemathesis")

# Streams do not end, and a stop flag, a pause or a decision would change what the next call meets.
_ASIDE = r"^/api/stream$|^/api/control$|^/static/"


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_rich_folder(tmp_path_factory.mktemp("fuzzed"))) as found:
        yield found


@pytest.fixture(scope="module")
def token(fuzzed: Served) -> str | None:
    return fuzzed.token(Role.ADMIN)


@pytest.fixture(scope="module")
def document(fuzzed: Served):  # type: ignore[no-untyped-def]
    return schemathesis.openapi.from_dict(fuzzed.get("/openapi.json").json()).exclude(path_regex=_ASIDE)


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_a_call_gets_a_documented_answer(case, fuzzed: Served, token: str | None) -> None:  # type: ignore[no-untyped-def]
    response = case.call(base_url=fuzzed.base, headers={"Authorization": f"Bearer {token}"}, allow_redirects=False)
    case.validate_response(
        response,
        checks=(
            schemathesis.checks.not_a_server_error,
            schemathesis.specs.openapi.checks.status_code_conformance,
            schemathesis.specs.openapi.checks.content_type_conformance,
            schemathesis.specs.openapi.checks.response_schema_conformance,
        ),
    )
