"""What counts as local, and that nothing else passes --egress local."""

from __future__ import annotations

import socket

import pytest

from wsigym.agents.egress import check_egress, place_of
from wsigym.agents.endpoints import endpoint_at, load_endpoint
from wsigym.errors import EgressError, InvalidArgumentError

LOCAL = ["127.0.0.1", "127.9.9.9", "[::1]", "10.0.0.7", "172.16.0.1", "172.31.255.255", "192.168.1.2", "[fd00::1]"]
LOCAL += ["169.254.1.1", "[fe80::1]", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST", "2130706433"]
EXTERNAL = ["8.8.8.8", "172.15.0.1", "172.32.0.1", "192.169.0.1", "11.0.0.1", "100.64.0.1", "0.0.0.0", "[::]"]
EXTERNAL += ["[2001:db8::1]", "[::ffff:8.8.8.8]", "nowhere.invalid"]


@pytest.mark.parametrize("host", LOCAL)
def test_local(host: str) -> None:
    endpoint = endpoint_at(f"http://{host}:8000/v1", "m")
    assert place_of(endpoint) == "local"
    assert check_egress(endpoint, "local") == "local"


@pytest.mark.parametrize("host", EXTERNAL)
def test_external(host: str) -> None:
    endpoint = endpoint_at(f"http://{host}:8000/v1", "m")
    assert place_of(endpoint) == "external"
    assert check_egress(endpoint, "any") == "external"
    with pytest.raises(EgressError, match=r"is outside: .*--egress local allows loopback and private.*--egress any"):
        check_egress(endpoint, "local")


def test_a_name_is_local_only_where_every_address_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, 1, 6, "", (address, 0)) for address in host.removesuffix(".test").split("x")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert place_of(endpoint_at("http://10.0.0.1x127.0.0.1.test/v1", "m")) == "local"
    assert place_of(endpoint_at("http://10.0.0.1x8.8.8.8.test/v1", "m")) == "external"


def test_the_scripted_one_is_local() -> None:
    assert check_egress(load_endpoint("scripted"), "local") == "local"


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="allowed are 'local' and 'any'"):
        check_egress(load_endpoint("scripted"), "none")
