// Groups and transactions of kafkajs, for its driver; the calls are in group_calls.py.
import { COPIED, Inbox } from './inbox.mjs'
import { Unsupported } from './serve.mjs'

const TIMES = { sessionTimeout: 10_000, heartbeatInterval: 500, maxWaitTimeInMs: 200 }

export class Groups {
  constructor (kafka, admin, asMessage, found) {
    Object.assign(this, { kafka, admin, asMessage, found })
    this.members = new Map()
  }

  async join ({ member, group, topic, protocol }) {
    if (protocol !== 'classic') throw new Unsupported('it has the classic protocol alone')
    this.members.set(member, await this.joined(group, topic))
  }

  async joined (group, topic) {
    const consumer = this.kafka.consumer({ groupId: group, ...TIMES })
    const joined = { consumer, topic, inbox: new Inbox(), partitions: [] }
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      joined.partitions = payload.memberAssignment[topic] ?? []
    })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => joined.inbox.push({ ...message, partition })
    })
    return joined
  }

  async poll ({ member, timeout_ms: timeoutMs }) {
    const polled = await this.members.get(member).inbox.poll(timeoutMs)
    return polled.map(message => ({ ...this.found(message), partition: message.partition }))
  }

  async assigned ({ member }) {
    return this.members.get(member).partitions
  }

  async commit ({ member }) {
    const { consumer, inbox, topic } = this.members.get(member)
    const rows = [...inbox.next].map(([partition, offset]) => ({ topic, partition, offset: String(offset) }))
    await consumer.commitOffsets(rows)
  }

  async leave ({ member }) {
    await this.members.get(member).consumer.disconnect()
    this.members.delete(member)
  }

  async commit_offset ({ group, topic, partition, offset }) {
    const partitions = [{ partition, offset: String(offset) }]
    await this.admin.setOffsets({ groupId: group, topic, partitions })
  }

  async committed ({ group, topic, partition }) {
    const [{ partitions }] = await this.admin.fetchOffsets({ groupId: group, topics: [topic] })
    const row = partitions.find(row => row.partition === partition)
    return row === undefined || row.offset === '-1' ? null : { offset: Number(row.offset), metadata: row.metadata }
  }

  async list_groups () {
    return (await this.admin.listGroups()).groups.map(group => group.groupId)
  }

  async describe_group ({ group }) {
    const { groups: [{ state, members }] } = await this.admin.describeGroups([group])
    return { state: state.toLowerCase(), members: members.length }
  }

  async delete_group ({ group }) {
    await this.admin.deleteGroups([group])
  }

  async transaction ({ transactional_id: transactionalId, topic, records, commit }) {
    await this.inTransaction(transactionalId, commit, async transaction => {
      const messages = records.map((record, index) => this.asMessage(record, index % 2))
      await transaction.send({ topic, messages })
    })
  }

  async copy ({ transactional_id: transactionalId, group, topic, target, count, commit }) {
    const { consumer, inbox } = await this.joined(group, topic)
    await this.inTransaction(transactionalId, commit, async transaction => {
      const read = await inbox.take(count)
      const messages = read.map(({ partition, key, value, timestamp, headers }) =>
        ({ partition, key, value: Buffer.concat([COPIED, value]), timestamp, headers }))
      await transaction.send({ topic: target, messages })
      const partitions = [...inbox.next].map(([partition, offset]) => ({ partition, offset: String(offset) }))
      await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic, partitions }] })
    })
    await consumer.disconnect()
  }

  async inTransaction (transactionalId, commit, body) {
    const producer = this.kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    const transaction = await producer.transaction()
    await body(transaction)
    await (commit ? transaction.commit() : transaction.abort())
    await producer.disconnect()
  }
}
