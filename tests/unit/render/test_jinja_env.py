"""The sandbox: keys before methods, no silent gaps, nothing within reach."""

from __future__ import annotations

import pytest

from stoker.render.jinja_env import OutputTooLarge, StokerEnvironment, render_text
from stoker.render.sources import Source
from stoker.render.template_errors import finding_from


def sources(texts):
    return {name: Source(name + text, f"templates/{name}", text) for name, text in texts.items()}


def rendered(text, data=None, *, limit=10_000, **others):
    data = data or {}
    named = sources({"main.j2": text, **others})
    return render_text(StokerEnvironment(named, data), "main.j2", data, limit)


def refusal(text, data=None, **others):
    named = sources({"main.j2": text, **others})
    data = data or {}
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any error at all becomes a finding
        render_text(StokerEnvironment(named, data), "main.j2", data, 10_000)
    return finding_from(caught.value, named, "main.j2")


def test_a_typo_is_named_with_place_and_nearest_key():
    """ux.md: `templates/vllm.yaml.j2:41:18: 'placement.nod' is undefined (did you mean 'node'?)`"""
    finding = refusal("a: 1\nb:    {{ placement.nod }}\n", {"placement": {"node": "x"}})

    assert "templates/main.j2:2:10" == str(finding.location)
    assert "'placement.nod' is undefined" == finding.message
    assert "did you mean 'node'?" == finding.hint


def test_a_default_inside_a_loop_sees_the_loop_variable():
    """cases.md row 15: a helper that could not see it gave its default for every item."""
    data = {"values": {"ports": [{"port": 1}, {}]}}

    text = rendered("{% for p in values.ports %}{{ p.port | default(80) }} {% endfor %}", data)

    assert "1 80 " == text


def test_a_default_never_hides_a_variable_that_does_not_exist():
    """cases.md row 15: the typo `itm` must not turn into the default."""
    finding = refusal("{% for item in [1] %}{{ itm | default(80) }}{% endfor %}")

    assert "'itm' is undefined" == finding.message


def test_a_default_serves_macro_parameters():
    assert "5" == rendered("{% macro f(a, b) %}{{ b | d(5) }}{% endmacro %}{{ f(1) }}")


def test_an_include_behind_a_false_condition_is_never_looked_for():
    """cases.md row 17."""
    assert "x" == rendered(
        '{% if values.on %}{% include "absent/file.j2" %}{% endif %}x', {"values": {"on": False}}
    )


def test_an_include_that_is_not_there_is_named():
    assert "there is no template 'no.j2'" == refusal('{% include "no.j2" %}').message


def test_includes_are_found_beside_the_file_then_from_the_top():
    texts = {
        "a/main.j2": '{% include "part.j2" %}{% include "lib/other.j2" %}',
        "a/part.j2": "beside ",
        "part.j2": "top ",
        "lib/other.j2": "lib",
    }
    named = sources(texts)

    assert "beside lib" == render_text(StokerEnvironment(named, {}), "a/main.j2", {}, 100)


@pytest.mark.parametrize("key", ["items", "keys", "values", "get", "update", "pop"])
def test_a_key_called_like_a_method_is_the_key(key):
    """b.J row 83: plain Jinja prints a bound method here."""
    assert "7" == rendered(f"{{{{ values.{key} }}}}", {"values": {key: 7}})


def test_methods_still_work_where_no_key_is_called_so():
    assert "a=1 " == rendered(
        "{% for k, v in values.items() %}{{ k }}={{ v }} {% endfor %}", {"values": {"a": 1}}
    )


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("values.items", "method 'items'"),
        ("values.a | map('upper')", "generator"),
        ("cycler", "method"),
        ("cycler('a') | string", "address"),
    ],
)
def test_what_holds_an_address_is_not_printed(expression, reason):
    """b.J row 83, and R4: the text would differ at each render."""
    assert reason in refusal(f"{{{{ {expression} }}}}", {"values": {"a": ["x"]}}).message


def test_data_prints_as_json():
    data = {"values": {"t": True, "n": None, "l": ["a", 1], "m": {"k": False}, "f": 1.5}}
    text = "{{ values.t }} {{ values.n }} {{ values.l }} {{ values.m }} {{ values.f }}"

    assert 'true null ["a", 1] {"k": false} 1.5' == rendered(text, data)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a: b' | quote", '"a: b"'),
        ("7 | quote", '"7"'),
        ("true | quote", '"true"'),
        ("['é', none] | to_json", '["é", null]'),
        ("1500 | seconds", "2"),
        ("17179869184 | quantity", "16Gi"),
        ("1000 | quantity", "1000"),
        ("0 | quantity", "0"),
        ("'a' | b64encode", "YQ=="),
        ("'a' | sha256", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ],
)
def test_filters(expression, value):
    assert value == rendered(f"{{{{ {expression} }}}}")


def test_to_json_of_a_missing_key_is_an_error():
    assert "'values.x' is undefined" == refusal("{{ values.x | to_json }}", {"values": {}}).message


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__",
        "''.__class__.__mro__[1].__subclasses__()",
        "values.__init__.__globals__",
        "cycler.__init__.__globals__.os.popen('id')",
        "range.__self__",
        "self.__init__",
        "'{0.__class__.__mro__}'.format(1)",
        "'{a.__class__}'.format_map({'a': 1})",
        "(('{0.__class__}'.format) | string)[0:0] ~ ['{0.__class__}'] | map('format', 1) | first ~ ''.__class__",
        "'' | attr('__class__')",
        "{'__class__=\"x\" ': 1} | xmlattr",
        "'x' | urlize",
        "lipsum()",
        "[1, 2] | random",
        "values.update({'a': 1})",
        "values.clear()",
        "[].append(1)",
        "joiner.__call__.__globals__",
        "namespace.__init__.__globals__",
        "config",
        "open('/etc/passwd')",
        "import('os')",
    ],
)
def test_nothing_outside_the_data_is_within_reach(expression):
    """b.J rows 70 to 76: escapes of the past and what would be convenient for the next."""
    assert "template-error" == refusal(f"{{{{ {expression} }}}}", {"values": {"a": 1}}).code


def test_a_stored_reference_to_format_is_sandboxed_too():
    """b.J row 72 (CVE-2024-56326) and 73 (CVE-2025-27516)."""
    text = "{% set f = '{0.__class__.__name__}'.format %}{{ ['x'] | map('replace', 'x', f(1)) | list }}"

    assert "unsafe" in refusal(text).message


@pytest.mark.parametrize(
    "name", ["{x}/a.j2", "../a.j2", "/a.j2", ".hidden", "a b", "a\x00", "f'{1}'"]
)
def test_template_names_are_plain_paths(name):
    """b.J row 74 (CVE-2024-56201): names reach generated code."""
    named = {name: Source("1", name, "x"), "main.j2": Source("2", "main.j2", "{% include n %}")}
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any error at all becomes a finding
        render_text(StokerEnvironment(named, {}), "main.j2", {"n": name}, 100)

    assert "template" in finding_from(caught.value, named, "main.j2").message


def test_data_is_never_compiled():
    """b.J row 78: a value that looks like a template stays text."""
    assert "{{ 7 * 7 }}" == rendered("{{ values.a }}", {"values": {"a": "{{ 7 * 7 }}"}})


def test_output_is_cut_off_at_the_limit():
    with pytest.raises(OutputTooLarge):
        rendered("{% for a in range(1000) %}xxxxxxxxxx{% endfor %}", limit=100)


def test_a_syntax_error_has_its_line():
    assert "templates/main.j2:2:4" == str(refusal("a\nb: {% if %}\n").location)


def test_an_error_in_an_included_file_names_that_file():
    finding = refusal(
        '{% include "part.j2" %}', {"values": {}}, **{"part.j2": "\n\n{{ values.x }}"}
    )

    assert "templates/part.j2:3:4" == str(finding.location)


def test_recursion_is_an_error_not_a_crash():
    """b.J row 82."""
    for text in ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", '{% include "main.j2" %}'):
        assert "too deeply" in refusal(text).message


def test_blocks_leave_no_lines_behind():
    assert "a: 1\nb: 2\n" == rendered("a: 1\n  {% if true %}\nb: 2\n  {% endif %}\n")


def test_compiled_templates_never_touch_the_disk():
    """b.J row 77: bytecode in a shared folder is code of whoever writes there first."""
    assert StokerEnvironment({}, {}).bytecode_cache is None
