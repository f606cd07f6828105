"""Source lines, from metadata or from the stack frame index."""

from layoutsim.analysis.source_lines import source_line
from layoutsim.text import parse_module

INDEX = """HloModule m

FileNames
1 "train.py"
2 "layers/dense.py"

FunctionNames
1 "main"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=0 end_column=3}
2 {file_name_id=2 function_name_id=1 line=40 end_line=41 column=0 end_column=3}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

"""


def _line(metadata: str, index: str = INDEX) -> str:
    module = parse_module(f"{index or 'HloModule m'}\nENTRY e {{\n ROOT p = f32[2] parameter(0){metadata}\n}}\n")
    return source_line(module.entry.root)


def test_the_frame_leads_to_file_and_line() -> None:
    assert _line(", metadata={stack_frame_id=2}") == "layers/dense.py:40"


def test_a_file_in_the_metadata_comes_first() -> None:
    assert _line(', metadata={source_file="a.py" source_line=3 stack_frame_id=2}') == "a.py:3"


def test_an_unknown_frame_has_no_line() -> None:
    assert _line(", metadata={stack_frame_id=9}") == ""


def test_without_metadata_or_index_there_is_no_line() -> None:
    assert _line("") == ""
    assert _line(", metadata={stack_frame_id=2}", index="") == ""
