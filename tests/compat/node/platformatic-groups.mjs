// Groups and transactions of @platformatic/kafka, for its driver; the calls are in group_calls.py.
import { Consumer, Producer } from '@platformatic/kafka'
import { COPIED, Inbox } from './inbox.mjs'
import { encode } from './serve.mjs'

const TIMES = { sessionTimeout: 10_000, heartbeatInterval: 500, maxWaitTime: 200 }

export class Groups {
  constructor (options, admin, asMessage) {
    Object.assign(this, { options, admin, asMessage })
    this.members = new Map()
  }

  async join ({ member, group, topic, protocol }) {
    this.members.set(member, await this.joined(group, topic, protocol))
  }

  async joined (group, topic, protocol = 'classic') {
    const times = protocol === 'classic' ? TIMES : { maxWaitTime: TIMES.maxWaitTime }
    const consumer = new Consumer({ ...this.options, groupId: group, groupProtocol: protocol, ...times })
    const stream = await consumer.consume({
      topics: [topic], mode: 'committed', fallbackMode: 'earliest', autocommit: false
    })
    const joined = { consumer, stream, topic, inbox: new Inbox() }
    stream.on('data', message => joined.inbox.push(message))
    stream.on('error', error => { joined.error = error })
    return joined
  }

  async poll ({ member, timeout_ms: timeoutMs }) {
    const { inbox, error } = this.members.get(member)
    if (error) throw error
    return (await inbox.poll(timeoutMs)).map(found)
  }

  async assigned ({ member }) {
    return (this.members.get(member).consumer.assignments ?? []).flatMap(({ partitions }) => partitions)
  }

  async commit ({ member }) {
    const { consumer, inbox, topic } = this.members.get(member)
    const offsets = [...inbox.next].map(([partition, offset]) =>
      ({ topic, partition, offset: BigInt(offset), leaderEpoch: -1 }))
    await consumer.commit({ offsets })
  }

  async leave ({ member }) {
    await left(this.members.get(member))
    this.members.delete(member)
  }

  async commit_offset ({ group, topic, partition, offset }) {
    const partitionOffsets = [{ partition, offset: BigInt(offset) }]
    await this.admin.alterConsumerGroupOffsets({ groupId: group, topics: [{ name: topic, partitionOffsets }] })
  }

  async committed ({ group, topic, partition }) {
    const [{ topics }] = await this.admin.listConsumerGroupOffsets({ groups: [group] })
    const row = topics.find(({ name }) => name === topic)
      ?.partitions.find(({ partitionIndex }) => partitionIndex === partition)
    return row ? { offset: Number(row.committedOffset), metadata: row.metadata } : null
  }

  async list_groups () {
    return [...(await this.admin.listGroups()).keys()]
  }

  async describe_group ({ group }) {
    const { state, members } = (await this.admin.describeGroups({ groups: [group] })).get(group)
    return { state: state.toLowerCase(), members: members.size }
  }

  async delete_group ({ group }) {
    await this.admin.deleteGroups({ groups: [group] })
  }

  async transaction ({ transactional_id: transactionalId, topic, records, commit }) {
    await this.inTransaction(transactionalId, commit, async transaction => {
      const messages = records.map((record, index) => this.asMessage(record, topic, index % 2))
      await transaction.send({ messages })
    })
  }

  async copy ({ transactional_id: transactionalId, group, topic, target, count, commit }) {
    const member = await this.joined(group, topic)
    await this.inTransaction(transactionalId, commit, async transaction => {
      const read = await member.inbox.take(count)
      await transaction.addConsumer(member.consumer)
      const messages = read.map(({ partition, key, value, timestamp, headers }) =>
        ({ topic: target, partition, key, value: Buffer.concat([COPIED, value]), timestamp, headers }))
      await transaction.send({ messages })
      await transaction.addOffset(read.at(-1)) // the source has one partition in use
    })
    await left(member)
  }

  async inTransaction (transactionalId, commit, body) {
    // Left alone it says 0 and 0, which is to go on as an older producer, and is fenced.
    const nobody = { producerId: -1n, producerEpoch: -1 }
    const producer = new Producer({ ...this.options, ...nobody, transactionalId, idempotent: true })
    const transaction = await producer.beginTransaction()
    await body(transaction)
    await (commit ? transaction.commit() : transaction.abort())
    await producer.close()
  }
}

async function left ({ consumer, stream }) {
  await stream.close()
  await consumer.close()
}

function found (message) {
  return {
    partition: message.partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: encode(message.key),
    value: encode(message.value),
    headers: [...message.headers].map(([name, value]) => [name.toString(), encode(value)])
  }
}
