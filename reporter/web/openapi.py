"""The route table as an OpenAPI 3.1 document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson
from starlette.responses import Response

from reporter.web.problems import TITLES
from reporter.web.routing import Role, Route

_ALWAYS = (400, 421, 422, 429)
_PLACE = re.compile(r"\{([a-z_]+)(:[a-z]+)?\}")


def document(routes: Sequence[Route], version: str) -> Response:
    return Response(orjson.dumps(described(routes, version)), media_type="application/json")


def described(routes: Sequence[Route], version: str) -> dict[str, Any]:
    shapes = [shape for route in routes for shape in (route.query, route.body) if shape is not None]
    found, components = msgspec.json.schema_components(shapes, ref_template="#/components/schemas/{name}")
    del found
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_PLACE.sub(r"{\1}", route.path), {})[route.method.lower()] = _operation(route, components)
    problem = {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sumi-Ripple", "version": version, "description": "See docs/api.md."},
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": problem},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, components: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{re.sub('[^a-z0-9]+', '_', route.path).strip('_') or 'front'}",
        "summary": route.summary,
        "description": f"Role: {route.role.word}. Limit: {route.bucket.value}.",
        "parameters": _parameters(route, components),
        "responses": _responses(route),
    }
    if route.role is not Role.ANONYMOUS:
        found["security"] = [{"token": []}]
    if route.body is not None:
        shape = {"$ref": f"#/components/schemas/{route.body.__name__}"}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": shape}}}
    return found


def _parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    named = [
        {"name": place[1], "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for place in _PLACE.finditer(route.path)
    ]
    if route.query is None:
        return named
    shape = components[route.query.__name__]
    required = set(shape.get("required", ()))
    return named + [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(schema)}
        for name, schema in shape["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query has no null: a parameter without a value is left out."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**rest, **kinds[0]} if len(kinds) == 1 else schema


def _responses(route: Route) -> dict[str, Any]:
    good: dict[str, Any] = {"description": route.summary}
    if route.kind:
        shape = {
            "type": "object",
            "required": ["v", "kind"],
            "properties": {"v": {"const": route.version}, "kind": {"enum": route.kind.split("|")}},
        }
        good["content"] = {route.media_type: {"schema": shape}}
    elif route.media_type:
        good["content"] = {route.media_type: {}}
    found = {str(route.status): good}
    if route.method == "GET" and (route.kind or route.path.startswith("/static/")):
        found["304"] = {"description": "Not changed since the ETag that was given"}
    statuses = {*_ALWAYS, *route.problems}
    if route.role is not Role.ANONYMOUS:
        statuses |= {401, 403}
    if route.is_write:
        statuses |= {403, 408, 413, 415}
    statuses |= {401}  # a bearer token that is not known
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return found | {str(status): {"description": TITLES[status], "content": problem} for status in sorted(statuses)}
