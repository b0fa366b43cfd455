"""The books of what librdkafka was given and what it has begun to read."""

from runnel.client.assignment import Assignment

A, B = ("t", 0), ("t", 1)


def test_a_seek_before_it_is_given_is_where_it_starts() -> None:
    books = Assignment()
    assert books.put_off(A, 3)  # not even assigned
    books.add([A, B])
    assert books.put_off(B, 4)
    assert books.put_off(B, 5)
    assert books.hand_over() == {A: 3, B: 5}
    assert not books.waiting and not books.has_begun
    assert books.begin([A, B]) == {}, "they started there"
    assert books.has_begun
    assert not books.put_off(A, 6), "now librdkafka can do it"


def test_a_seek_while_it_begins_is_done_when_it_has_begun() -> None:
    books = Assignment()
    books.add([A, B])
    assert books.hand_over() == {A: None, B: None}
    assert books.put_off(A, 3)
    assert books.begin([B]) == {}
    assert books.begin([A, B]) == {A: 3}
    assert books.begin([A]) == {}, "once"
    assert not books.beginning


def test_what_is_added_twice_is_given_once() -> None:
    books = Assignment()
    books.add([A])
    books.hand_over()
    books.add([B, A])
    assert books.hand_over() == {B: None}
    assert list(books.partitions) == [A, B]


def test_what_is_forgotten_leaves_nothing_behind() -> None:
    books = Assignment()
    books.add([A, B])
    books.forget([B])
    books.hand_over()
    books.put_off(A, 3)
    books.ends[A] = 9
    books.forget([A, B])
    assert not (books.partitions or books.beginning or books.ends or books.halted)
    books.add([A])
    assert books.hand_over() == {A: None}


def test_a_halted_one_is_sought_anew_and_begins_again() -> None:
    books = Assignment()
    books.add([A])
    books.hand_over()
    books.begin([A])
    books.halted.add(A)
    assert not books.put_off(A, 3)
    books.begin_again([A])
    assert not books.halted
    assert books.put_off(A, 4)
    assert books.begin([A]) == {A: 4}
