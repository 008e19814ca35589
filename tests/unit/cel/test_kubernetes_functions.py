"""Quantities, URLs and addresses: the examples of Kubernetes' own documentation, and the corners."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.cel import Cel
from stoker.model.expression import Truth
from stoker.objects.quantity import parse_quantity

OBJECT = {
    "spec": {
        "memory": "1Gi",
        "cpu": 2,
        "url": "https://me:pw@Ex.org:8443/a%20b/c d?x=1&y=2&x=3",
    },
    "status": {"podIP": "10.1.2.3"},
}


def ask(expression: str):
    assert Cel().faults(expression) == ()
    return Cel().about(OBJECT).ask(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "quantity(spec.memory).isGreaterThan(quantity('500Mi'))",
        "quantity('500m').isLessThan(quantity('1'))",
        "quantity('1Gi').compareTo(quantity('1024Mi')) == 0",
        "quantity('1Gi') == quantity('1024Mi') && quantity('1') != quantity('2')",
        "quantity('0.1').add(quantity('200m')) == quantity('300m')",
        "quantity('50k').add(20) == quantity('50020') && quantity('50k').sub(20000) == quantity('30k')",
        "quantity('1').sub(quantity('3')).sign() == -1 && quantity('0').sign() == 0",
        "quantity('2k').isInteger() && quantity('2k').asInteger() == 2000",
        "!quantity('1.5').isInteger() && quantity('1.5').asApproximateFloat() == 1.5",
        "isQuantity('1.3Gi') && !isQuantity('1,3G') && !isQuantity('200K') && !isQuantity('')",
        "quantity(string(spec.cpu)).asInteger() == 2",
        "['1Gi', '2Gi'].all(q, quantity(q).isGreaterThan(quantity('1023Mi')))",
        "url(spec.url).getScheme() == 'https' && url(spec.url).getPort() == '8443'",
        "url(spec.url).getHost() == 'Ex.org:8443' && url(spec.url).getHostname() == 'Ex.org'",
        "url(spec.url).getEscapedPath() == '/a%20b/c%20d'",
        "url(spec.url).getQuery()['x'] == ['1', '3'] && url('/a').getQuery().size() == 0",
        "url('https://[::1]:80/').getHost() == '[::1]:80' && url('https://[::1]/').getHostname() == '::1'",
        "url('/only/path').getScheme() == '' && url('/only/path').getHost() == ''",
        "url('https://example.com').getPort() == '' && url('https://example.com').getEscapedPath() == ''",
        "isURL('https://user:pass@example.com:80/path?query=val') && isURL('/absolute-path')",
        "!isURL('https://a:b:c/') && !isURL('../relative-path') && !isURL('example.com') && !isURL('')",
        "!isURL('https://x/%zz') && !isURL('https://a b/') && !isURL('https://h:99999/')",
        "ip(status.podIP).family() == 4 && ip('::1').family() == 6",
        "isIP('2001:db8::1') && !isIP('10.1.2') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
        "ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')",
        "ip('2001:DB8::ABCD') == ip('2001:db8::abcd')",
        "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()",
        "ip('169.254.169.254').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()",
        "ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
        "!ip('224.0.1.1').isLinkLocalMulticast() && !ip('::1').isGlobalUnicast()",
        "cidr('10.0.0.0/8').containsIP(status.podIP) && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')",
        "cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8')) && !cidr('::/0').containsCIDR('10.0.0.0/8')",
        "!cidr('::/0').containsIP('10.0.0.1')",
        "cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.1/8').ip() == ip('10.0.0.1')",
        "cidr('10.0.0.1/8').prefixLength() == 8",
        "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/255.0.0.0') && !isCIDR('::/129')",
    ],
)
def test_it_is_as_kubernetes_has_it(expression):
    assert ask(expression).truth is Truth.TRUE, ask(expression).message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("quantity('x').sign() == 0", "'x' is not a quantity"),
        ("quantity(spec.cpu).sign() == 0", "quantity(int64)"),
        ("quantity('1.5').asInteger() == 1", "1.5 is no whole number"),
        ("quantity('9223372036854775807').add(1).asInteger() == 0", "is no whole number"),
        ("quantity('1').getHost() == ''", "no url"),
        ("quantity(spec.memory).family() == 4", "no ip"),
        ("url('example.com').getHost() == ''", "is no URL"),
        ("ip('10.1.2').family() == 4", "10.1.2"),
        ("ip('::ffff:1.2.3.4').family() == 6", "IPv4 address inside IPv6"),
        ("cidr('10.0.0.0').prefixLength() == 8", "is no range of addresses"),
    ],
)
def test_what_is_none_is_an_error_and_never_false(expression, message):
    answer = ask(expression)

    assert answer.truth is Truth.ERROR
    assert message in answer.message


def test_a_text_without_end_is_refused_by_every_function():
    manifest = {"spec": {"text": "1" * 100_000}}
    questions = Cel().about(manifest)

    for expression in ("url(spec.text)", "ip(spec.text)", "cidr(spec.text)", "quantity(spec.text)"):
        assert questions.ask(f"{expression} == {expression}").truth is Truth.ERROR
    for expression in ("isURL(spec.text)", "isIP(spec.text)", "isCIDR(spec.text)"):
        assert questions.ask(expression).truth is Truth.FALSE


@given(
    st.integers(-(10**9), 10**9), st.sampled_from(["", "m", "k", "Mi", "Gi"]), st.integers(0, 99)
)
def test_sums_and_comparisons_are_exact(number, suffix, other):
    """Below 2^63, beyond which Kubernetes' quantities end."""
    one, two = f"{number}{suffix}", f"{other}m"
    total = parse_quantity(one) + parse_quantity(two)
    expression = (
        f"quantity('{one}').add(quantity('{two}')) == quantity('{total:f}')"
        f" && quantity('{one}').add(quantity('{two}')).sub(quantity('{two}')) == quantity('{one}')"
    )

    assert ask(expression).truth is Truth.TRUE
