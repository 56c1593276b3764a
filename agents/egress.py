"""Where an endpoint is: on this machine or network, or outside. Slides are patients' data.

Local is an address of one of `LOCAL_NETWORKS`; a host name is local where every address that it resolves to is. A name
that does not resolve counts as external. The client sends to a local endpoint without any proxy, and follows no
redirect, so that what is addressed to it reaches no other place.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Literal

from wsigym.errors import EgressError, InvalidArgumentError

from .endpoints import Endpoint

__all__ = ["LOCAL_NETWORKS", "Place", "check_egress", "place_of"]

Place = Literal["local", "external"]

LOCAL_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "127.0.0.0/8",  # loopback
        "::1/128",
        "10.0.0.0/8",  # private: RFC 1918
        "172.16.0.0/12",
        "192.168.0.0/16",
        "fc00::/7",  # private: RFC 4193
        "169.254.0.0/16",  # one link: RFC 3927
        "fe80::/10",  # one link: RFC 4291
    )
)


def place_of(endpoint: Endpoint) -> Place:
    """Where the endpoint is. Asks the system's resolver, and may wait for it."""
    if endpoint.host is None:  # the scripted one, which a run starts on 127.0.0.1
        return "local"
    addresses = _addresses(endpoint.host)
    return "local" if addresses and all(map(_is_local, addresses)) else "external"


def check_egress(endpoint: Endpoint, egress: str) -> Place:
    """Where the endpoint is; raises `EgressError` where `egress` is "local" and it is external."""
    if egress not in ("local", "any"):
        raise InvalidArgumentError(f"egress is {egress!r}; allowed are 'local' and 'any'.")
    place = place_of(endpoint)
    if egress == "local" and place == "external":
        found = ", ".join(map(str, _addresses(str(endpoint.host)))) or "no address"
        raise EgressError(
            f"endpoint {endpoint.name!r} is outside: {endpoint.host} is {found}, and --egress local allows loopback "
            "and private addresses only. Nothing was sent. Use a local server, or allow it with --egress any where the "
            "slides may leave."
        )
    return place


def _addresses(host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(address[0]).partition("%")[0]) for *_, address in found]


def _is_local(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return any((mapped or address) in network for network in LOCAL_NETWORKS)
