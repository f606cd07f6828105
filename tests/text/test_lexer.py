import pytest

from layoutsim.errors import ParseError
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.source import Source
from tests.text.asking import body_complaint, complaint, in_entry, printed, root_of


def _tokens(text: str) -> list[tuple[str, str]]:
    lexer = Lexer(Source(text))
    out = []
    while lexer.kind != Kind.END:
        out.append((str(lexer.kind), lexer.value))
        lexer.advance()
    return out


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("3x4", Kind.DXD),
        ("1_2", Kind.PAD),
        ("1_2_3x0_0_0", Kind.PAD),
        ("-1_-2", Kind.PAD),
        ("b01f_01io->b01f", Kind.DIM_LABELS),
        ("01bf_01io->01bf", Kind.DIM_LABELS),
        ("1e5", Kind.DECIMAL),
        ("-.5", Kind.DECIMAL),
        ("2.", Kind.DECIMAL),
        ("nan", Kind.DECIMAL),
        ("-nan", Kind.DECIMAL),
        ("nan(0x7fc01)", Kind.DECIMAL),
        ("12", Kind.INT),
        ("-12", Kind.INT),
        ("f32", Kind.PRIMITIVE),
        ("F32", Kind.IDENTIFIER),
        ("x:", Kind.NAME),
        ("%true", Kind.NAME),
        ("x=", Kind.ATTRIBUTE),
        ("add-start.1", Kind.IDENTIFIER),
        ('"a b"', Kind.STRING),
        ("'a b'", Kind.STRING),
        ("inf", "inf"),
        ("-inf", "-inf"),
        ("ROOT", "ROOT"),
        ("->", "->"),
        ("<=", "<="),
        ("...", "..."),
        ("?", "?"),
    ],
)
def test_one_token_of_each_kind(text: str, kind: str) -> None:
    assert [kind] == [found for found, _ in _tokens(text)]


def test_blanks_and_comments_only_separate() -> None:
    assert _tokens("a /* x\n */ , // y\n b\r\n\t/*index=5*/c") == [
        ("identifier", "a"),
        (",", ","),
        ("identifier", "b"),
        ("identifier", "c"),
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_line_comment_ends_at_any_line_ending(ending: str) -> None:
    assert root_of(f"  x = f32[] // shape{ending} parameter(0)").name == "x"


def test_a_bare_name_needs_a_blank_before_the_equals_sign() -> None:
    assert body_complaint("x= f32[2] parameter(0)") == (1, 1, "expected an instruction name, got 'x='")


def test_a_percent_name_needs_none() -> None:
    assert root_of("%x=f32[2] parameter(0)").name == "x"


@pytest.mark.parametrize("name", ["a-b.c_d", "a..b", "_x", "tuple"])
def test_legal_names_print_unchanged(name: str) -> None:
    assert printed(f"{name} = f32[] parameter(0)") == f"{name} = f32[] parameter(0)"


@pytest.mark.parametrize("name", ["f32", "replicated", "true", "nan", "ROOT"])
def test_reserved_words_are_no_bare_names(name: str) -> None:
    line, column, reason = body_complaint(f"{name} = f32[] parameter(0)")

    assert (line, reason.split(",")[0]) == (1, "expected an instruction name")
    assert column == (6 if name == "ROOT" else 1)


@pytest.mark.parametrize("name", ["replicated", "true", "ROOT"])
def test_keywords_are_names_behind_a_percent_sign(name: str) -> None:
    module = in_entry(f"  %{name} = f32[] parameter(0)\n  %y = f32[] negate(%{name})")

    assert module.entry.root.operand(0).name == name


def test_a_name_cannot_start_with_a_digit() -> None:
    assert body_complaint("%0 = f32[] parameter(0)") == (1, 1, "expected a name that starts with a letter or _ behind %")


def test_letters_outside_ascii_belong_into_strings() -> None:
    assert body_complaint("é = f32[] parameter(0)") == (1, 1, "unexpected character 'é'")
    assert root_of('  x = f32[] parameter(0), backend_config="é"').attributes.backend_config == "é"


def test_names_that_xla_would_change_are_refused_with_a_suggestion() -> None:
    assert body_complaint("%f32 = f32[] parameter(0)")[2] == "expected a legal instruction name such as f32_, got f32"
    assert body_complaint("__a = f32[] parameter(0)")[2] == "expected a legal instruction name such as a_a, got __a"
    assert root_of("__xla_a = f32[] parameter(0)").name == "__xla_a"


def test_an_unterminated_comment_is_reported_where_it_opens() -> None:
    assert complaint("HloModule m\n\nENTRY e { /* never\n}") == (3, 11, "unterminated comment")


def test_an_unterminated_string_is_reported_where_it_opens() -> None:
    assert body_complaint('x = f32[] parameter(0), backend_config="abc')[:2] == (1, 40)


def test_either_quote_opens_a_string() -> None:
    before = "x = f32[] parameter(0)"

    assert printed("y = f32[] negate(x), backend_config='abc\"d'", before) == 'y = f32[] negate(x), backend_config="abc\\"d"'


def test_escapes_stand_for_bytes() -> None:
    text = r'x = f32[] parameter(0), backend_config="\n \x41 \101 \303\251 \u00e9 \\"'

    assert root_of(text).attributes.backend_config == "\n A A é é \\"
    assert printed(text) == r'x = f32[] parameter(0), backend_config="\n A A \303\251 \303\251 \\"'


def test_unknown_escapes_are_reported_at_the_backslash() -> None:
    assert body_complaint(r'x = f32[] parameter(0), backend_config="ab\q"') == (1, 43, "unknown escape in a string")


def test_a_nul_character_is_refused() -> None:
    assert complaint("HloModule m\n\0") == (2, 1, "unexpected NUL character")


@pytest.mark.parametrize("text", ["<", ".", "..", "/", "-", "&", "nan(0x0)", "-nan(0x10000000000000)", "nan(1)"])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        _tokens(text)


def test_integers_fit_64_bits() -> None:
    assert _tokens("-9223372036854775808 18446744073709551615") == [
        ("integer", "-9223372036854775808"),
        ("integer", "18446744073709551615"),
    ]
    for text in ("18446744073709551616", "-9223372036854775809", "1" * 5000):
        with pytest.raises(ParseError, match="does not fit 64 bits"):
            _tokens(text)


def test_braces_inside_quotes_do_not_close_json() -> None:
    text = r'x = f32[] parameter(0), backend_config={"a": "}", "b": {"c": "\"{"}}'

    assert printed(text) == text


def test_unbalanced_json_is_reported_at_its_opening() -> None:
    line, column, reason = body_complaint('x = f32[] parameter(0), backend_config={"a": {{{')

    assert (line, column) == (1, 40)
    assert reason.startswith("expected } that closes")
