"""CEL's IP addresses and ranges as Kubernetes has them: `cidr('10.0.0.0/8').containsIP('10.1.2.3')`.

Names and rules are those of k8s.io/apiserver's cel/library (ip, cidr): no zones, no IPv4
inside IPv6. Called once by library, when the first expression is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Any, TypeAlias

from stoker.cel.declare import Overloads, Typed, declared, global_, member, reads, text_of, typed

__all__ = ["address_functions"]

IP, CIDR = "ip", "cidr"
_LONGEST = 60
_LOCAL_MULTICAST = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))
_BROADCAST = ip_address("255.255.255.255")

_Address: TypeAlias = IPv4Address | IPv6Address
_Range: TypeAlias = IPv4Interface | IPv6Interface
_Value: TypeAlias = Mapping[str, Any]


def address_functions(cel: Any) -> list[Any]:
    """ip, isIP, cidr, isCIDR and the members of both, for the runtime's module `cel`."""
    kind = cel.Type
    text, truth, whole = kind.STRING, kind.BOOL, kind.INT
    address = span = kind.Map(text, text)
    facts: dict[str, Callable[[_Address], bool]] = {
        "isUnspecified": lambda ip: ip.is_unspecified,
        "isLoopback": lambda ip: ip.is_loopback,
        "isLinkLocalUnicast": lambda ip: ip.is_link_local,
        "isLinkLocalMulticast": _is_local_multicast,
        "isGlobalUnicast": _is_global_unicast,
    }
    table: dict[str, Overloads] = {
        name: [member(truth, [address], lambda value, holds=holds: holds(_ip_of(value)))]
        for name, holds in facts.items()
    }
    return declared(
        cel,
        {
            **table,
            "ip": [
                global_(address, [text], lambda value: typed(IP, str(_ip(value)))),
                member(address, [span], lambda value: typed(IP, str(_range_of(value).ip))),
            ],
            "isIP": [global_(truth, [text], reads(_ip))],
            "ip.isCanonical": [global_(truth, [text], lambda value: str(_ip(value)) == value)],
            "family": [member(whole, [address], lambda value: _ip_of(value).version)],
            "cidr": [global_(span, [text], lambda value: typed(CIDR, str(_range(value))))],
            "isCIDR": [global_(truth, [text], reads(_range))],
            "containsIP": [
                member(truth, [span, text], lambda one, ip: _ip(ip) in _range_of(one).network),
                member(
                    truth, [span, address], lambda one, ip: _ip_of(ip) in _range_of(one).network
                ),
            ],
            "containsCIDR": [
                member(
                    truth, [span, text], lambda one, other: _holds(_range_of(one), _range(other))
                ),
                member(
                    truth, [span, span], lambda one, other: _holds(_range_of(one), _range_of(other))
                ),
            ],
            "masked": [member(span, [span], _masked)],
            "prefixLength": [member(whole, [span], lambda one: _range_of(one).network.prefixlen)],
        },
    )


def _ip(text: str) -> _Address:
    return _strict(ip_address(_short(text)), text)


def _range(text: str) -> _Range:
    if "/" not in text or not text.rpartition("/")[2].isdecimal():
        raise ValueError(f"{text[:_LONGEST]!r} is no range of addresses")
    found = ip_interface(_short(text))
    _strict(found.ip, text)
    return found


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:_LONGEST]!r} is no address")
    return text


def _strict(found: _Address, text: str) -> _Address:
    if isinstance(found, IPv6Address) and (found.ipv4_mapped is not None or found.scope_id):
        raise ValueError(f"{text!r} has a zone, or an IPv4 address inside IPv6")
    return found


def _ip_of(value: _Value) -> _Address:
    return _ip(text_of(IP, value))


def _range_of(value: _Value) -> _Range:
    return _range(text_of(CIDR, value))


def _is_local_multicast(ip: _Address) -> bool:
    return any(ip in network for network in _LOCAL_MULTICAST)


def _is_global_unicast(ip: _Address) -> bool:
    """As Go has it: private addresses are among them."""
    special = ip.is_unspecified or ip.is_multicast or ip.is_loopback or ip.is_link_local
    return not special and ip != _BROADCAST


def _holds(one: _Range, other: _Range) -> bool:
    inner, outer = other.network, one.network
    return inner.version == outer.version and (
        inner.prefixlen >= outer.prefixlen and inner.network_address in outer
    )


def _masked(value: _Value) -> Typed:
    return typed(CIDR, str(_range_of(value).network))
