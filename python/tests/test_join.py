"""Where a coordinator is looked for."""

import socket

import pytest

import drover
from drover.join import find


def test_arguments_come_first():
    environment = {"DROVER_ADDRESS": "a:1", "DROVER_TOKEN": "t", "DROVER_RANK": "3"}
    place = find(environment, "b:2", "u", 5)
    assert (place.address, place.token, place.rank) == ("b:2", "u", 5)


def test_then_what_launch_says():
    environment = {"DROVER_ADDRESS": "a:1", "DROVER_TOKEN": "t", "DROVER_RANK": "3", "MASTER_ADDR": "m", "RANK": "4"}
    place = find(environment)
    assert (place.address, place.token, place.rank) == ("a:1", "t", 3)


def test_a_token_in_a_file(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    assert find({"DROVER_ADDRESS": "a:1", "DROVER_TOKEN_FILE": str(tmp_path / "token")}).token == "secret"
    with pytest.raises(drover.JoinError, match="DROVER_TOKEN_FILE, .*elsewhere: No such file"):
        find({"DROVER_ADDRESS": "a:1", "DROVER_TOKEN_FILE": str(tmp_path / "elsewhere")})


@pytest.mark.parametrize("variable, folder", [("XDG_RUNTIME_DIR", "drover"), ("HOME", ".cache/drover")])
def test_torchrun_and_the_file_that_serve_writes(tmp_path, variable, folder):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "token-1234").write_text("secret\n")
    environment = {"HOME": str(tmp_path / "home"), "MASTER_ADDR": "head", "RANK": "2", "DROVER_PORT": "1234",
                   variable: str(tmp_path)}
    place = find(environment)
    assert (place.address, place.token, place.rank) == ("head:1234", "secret", 2)
    (tmp_path / folder / "token-1234").write_text("secret\nunix:@there\n")
    assert find(environment).address == "head:1234"  # another machine
    for here in ("localhost", "127.0.0.1", socket.gethostname()):
        place = find({**environment, "MASTER_ADDR": here})
        assert (place.address, place.token) == ("unix:@there", "secret")
    assert find({**environment, "DROVER_ADDRESS": "other:1234"}).address == "other:1234"


def test_by_default_on_this_machine(tmp_path):
    (tmp_path / "drover").mkdir()
    (tmp_path / "drover" / "token-29600").write_text("secret")
    place = find({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert (place.address, place.rank) == ("127.0.0.1:29600", 0)


def test_the_error_names_every_place_and_says_what_to_do(tmp_path):
    with pytest.raises(drover.JoinError) as error:
        find({"XDG_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path / "home")})
    for part in ("DROVER_ADDRESS", "MASTER_ADDR", "127.0.0.1:29600", "DROVER_TOKEN", "DROVER_TOKEN_FILE", "RANK",
                 f"{tmp_path}/run/drover/token-29600", f"{tmp_path}/home/.cache/drover/token-29600", "drover launch",
                 "drover serve", "torchrun"):
        assert part in str(error.value), part


@pytest.mark.parametrize("environment, why", [({"DROVER_PORT": "many"}, "DROVER_PORT is 'many'"),
                                              ({"DROVER_PORT": "0"}, "DROVER_PORT is '0'"),
                                              ({"RANK": "-1"}, "RANK is '-1'")])
def test_values_that_make_no_sense(environment, why):
    with pytest.raises(drover.JoinError, match=why):
        find(environment)
