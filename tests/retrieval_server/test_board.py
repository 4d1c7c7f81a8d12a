"""When a worker takes connections, and when the server as a whole is ready."""

from retrieval_server.board import Board, Seat, WorkerState


def test_a_worker_loads_openly_unless_another_answers_already() -> None:
    board = Board(2)
    first, second = Seat(board, 0), Seat(board, 1)
    assert first.begin() is WorkerState.OPEN
    assert second.begin() is WorkerState.OPEN
    first.enter(WorkerState.READY)
    assert second.begin() is WorkerState.LOADING


def test_a_server_is_whole_while_no_worker_that_takes_connections_is_loading() -> None:
    board = Board(3)
    assert not board.whole
    board[0] = WorkerState.READY
    assert (board.whole, board.ready, len(board)) == (True, 1, 3)
    board[1] = WorkerState.OPEN
    assert not board.whole
    board[1] = WorkerState.LOADING
    assert board.whole
    board[0] = WorkerState.DOWN
    assert not board.whole
