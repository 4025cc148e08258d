"""The OpenAPI description of gua serve: every path in it answers as it says, and every route of the API is in it."""
import json
import re

import jsonschema
import pytest

from conftest import ROOT
from lab_pages import make_policy
from serving import needs_serve, serve  # noqa: F401 (a fixture)
from test_serve_api import lab, server  # noqa: F401 (fixtures)

pytestmark = needs_serve

DOCUMENT = json.loads((ROOT / "src/serve/openapi.json").read_text())
# Paths whose answer needs a question.
QUESTIONS = {"/api/v1/report": "?compare=&longest=3", "/api/v1/report.csv": "?table=trend", "/api/v1/events": "?since=4w"}


def check(schema, value):
    jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


def resolve(item):
    while "$ref" in item:
        target = DOCUMENT
        for part in item["$ref"].split("/")[1:]:
            target = target[part]
        item = target
    return item


def expected(path, status):
    (kind, content), = resolve(DOCUMENT["paths"][path]["get"]["responses"][str(status)])["content"].items()
    return kind, content["schema"]


def test_the_server_gives_the_description(server):  # noqa: F811
    assert json.loads(server.get("/api/v1/openapi.json")[2]) == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.1")


@pytest.fixture(scope="module")
def policy(lab):  # noqa: F811
    """gua enforce has run beside the store."""
    make_policy(lab.parent / "policy.db")


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_every_answer_is_as_described(policy, server, path):  # noqa: F811
    status, headers, body = server.get(path + QUESTIONS.get(path, ""))
    kind, schema = expected(path, status)
    assert status == 200 and headers["Content-Type"].split(";")[0] == kind
    check(schema, json.loads(body) if kind == "application/json" else body)


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_every_parameter_is_described(server, path):  # noqa: F811
    """The error for an unknown one names those that the server takes."""
    status, _, body = server.get(path + "?unknown=1")
    assert status == 400
    check(expected(path, 400)[1], json.loads(body))
    takes = re.search(r" takes (.*)$", json.loads(body)["error"]).group(1)
    described = [resolve(item)["name"] for item in DOCUMENT["paths"][path]["get"]["parameters"]]
    assert described == ([] if takes == "none" else takes.split())


def test_every_route_of_the_api_is_described():
    table = (ROOT / "src/serve/route.c").read_text()
    routes = re.findall(r'\{ "((?:/api/|/healthz|/metrics)[^"]*)"', table)
    assert set(routes) == set(DOCUMENT["paths"])


def test_the_report_is_as_its_own_schema_says(server):  # noqa: F811
    schema = json.loads((ROOT / "man/report.schema.json").read_text())
    jsonschema.validate(json.loads(server.get("/api/v1/report?compare=")[2]), schema)


def test_a_stale_store_is_as_described(serve, lab):  # noqa: F811
    stale = serve("--db", lab, "--now", "2026-11-03 08:00")
    status, _, body = stale.get("/healthz")
    assert status == 503
    check(expected("/healthz", 503)[1], json.loads(body))
