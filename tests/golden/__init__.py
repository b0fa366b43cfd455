"""Golden dialogues: what Kafka 4.3 answers, recorded word for word, and demanded of Runnel.

A dialogue is an async function of a module in `tests/golden/dialogues/`, named by what it shows:

    async def a_member_joins_alone(talk: Talk) -> None:
        await talk.groups_ready()                       # internal topics are there and loaded
        await talk.topic("t", partitions=2)
        first = await talk.ask(JoinGroupRequest(group_id="g", ...), 9)           # connection "A"
        await talk.send(JoinGroupRequest(..., member_id=first.member_id), 9)     # may be parked
        await talk.send(JoinGroupRequest(...), 9, on="B")                        # another one
        joined = await talk.expect()                    # the oldest reply outstanding on "A"
        await talk.wait_ms(6500)                        # real at Kafka, virtual at the desk
        await talk.quiet(on="B")                        # B still waits
        await talk.restart()                            # stop and start: all state by replay
        await talk.journal("__consumer_offsets")        # the records as decoded

    @with_settings({"group.max.size": "2"})             # broker settings, if it needs other ones
    @unequal("error_message")                           # fields not compared: say why beside it

Record with `python -m tests.golden.record NAME ...` (all without a name; needs java and Maven, a
fresh Kafka for each, some 10 s); `--show` prints without writing. Then `pytest tests/golden`
replays every recorded dialogue at the desk and compares the texts. Never edit `recorded/` by hand.

What differs by nature is made equal: ids that the broker chose (<member 1>, <producer 1>,
<id of t>; ids that the client chose stay), times (<time>), hosts and ports. Structs in arrays of a
response are sorted, because Kafka keeps them in hash tables. Bytes on a connection are as sent:
one reply at a time in order, so a parked request holds up those behind it.
"""
