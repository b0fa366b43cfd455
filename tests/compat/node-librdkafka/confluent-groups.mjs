// Groups and transactions of @confluentinc/kafka-javascript, for its driver; see group_calls.py.
import kafka from '@confluentinc/kafka-javascript'
import { promisify } from 'node:util'
import { decode } from './serve.mjs'

const PATIENCE_MS = 20_000
const COPIED = Buffer.from('copy of ')
const STATES = ['unknown', 'preparing_rebalance', 'completing_rebalance', 'stable', 'dead', 'empty']

export class Groups {
  constructor (settings, admin, found) {
    Object.assign(this, { settings, admin, found })
    this.members = new Map()
  }

  async join ({ member, group, topic, protocol }) {
    this.members.set(member, await this.joined(group, topic, protocol))
  }

  async joined (group, topic, protocol = 'classic') {
    const consumer = new kafka.KafkaConsumer({
      ...this.settings,
      'group.id': group,
      'group.protocol': protocol,
      'enable.auto.commit': false,
      'isolation.level': 'read_committed'
    }, { 'auto.offset.reset': 'earliest' })
    await called(consumer, 'connect', { timeout: PATIENCE_MS })
    consumer.setDefaultConsumeTimeout(200)
    consumer.subscribe([topic])
    return consumer
  }

  async poll ({ member }) {
    const messages = await called(this.members.get(member), 'consume', 500)
    return messages.map(message => ({ ...this.found(message), partition: message.partition }))
  }

  async assigned ({ member }) {
    return this.members.get(member).assignments().map(({ partition }) => partition)
  }

  async commit ({ member }) {
    this.members.get(member).commitSync(null)
  }

  async leave ({ member }) {
    await called(this.members.get(member), 'disconnect')
    this.members.delete(member)
  }

  /** Its admin client only reads offsets; a consumer of the group without partitions commits. */
  async commit_offset ({ group, topic, partition, offset, metadata }) {
    const consumer = new kafka.KafkaConsumer({ ...this.settings, 'group.id': group }, {})
    await called(consumer, 'connect', { timeout: PATIENCE_MS })
    await called(consumer, 'commitCb', [{ topic, partition, offset, metadata }])
    await called(consumer, 'disconnect')
  }

  async committed ({ group, topic, partition }) {
    const asked = [{ groupId: group, partitions: [{ topic, partition }] }]
    const [{ error, partitions }] = await this.call('listConsumerGroupOffsets', asked, { timeout: PATIENCE_MS })
    if (error) throw error
    const [row] = partitions
    return row.offset === null || row.offset < 0 ? null : { offset: row.offset, metadata: row.metadata ?? '' }
  }

  async list_groups () {
    return (await this.call('listGroups', { timeout: PATIENCE_MS })).groups.map(({ groupId }) => groupId)
  }

  async describe_group ({ group }) {
    const { groups: [described] } = await this.call('describeGroups', [group], { timeout: PATIENCE_MS })
    if (described.error) throw described.error
    return { state: STATES[described.state], members: described.members.length }
  }

  async delete_group ({ group }) {
    const [deleted] = await this.call('deleteGroups', [group], { timeout: PATIENCE_MS })
    if (deleted.error) throw deleted.error
  }

  async transaction ({ transactional_id: transactionalId, topic, records, commit }) {
    await this.inTransaction(transactionalId, commit, async producer => {
      records.forEach(({ key, value, timestamp, headers }, index) => {
        const mine = headers.map(([name, content]) => ({ [name]: decode(content) }))
        producer.produce(topic, index % 2, decode(value), decode(key), timestamp, null, mine)
      })
    })
  }

  async copy ({ transactional_id: transactionalId, group, topic, target, count, commit }) {
    const consumer = await this.joined(group, topic)
    await this.inTransaction(transactionalId, commit, async producer => {
      const next = new Map()
      for (let left = count; left > 0;) {
        for (const message of await called(consumer, 'consume', left)) {
          const { partition, offset, key, value, timestamp, headers } = message
          producer.produce(target, partition, Buffer.concat([COPIED, value]), key, timestamp, null, headers)
          next.set(partition, { topic, partition, offset: offset + 1 })
          left--
        }
      }
      await called(producer, 'sendOffsetsToTransaction', [...next.values()], consumer, PATIENCE_MS)
    })
    await called(consumer, 'disconnect')
  }

  async inTransaction (transactionalId, commit, body) {
    const producer = new kafka.Producer({ ...this.settings, 'transactional.id': transactionalId })
    await called(producer, 'connect', { timeout: PATIENCE_MS })
    producer.setPollInterval(10)
    await called(producer, 'initTransactions', PATIENCE_MS)
    await called(producer, 'beginTransaction')
    await body(producer)
    if (commit) {
      await called(producer, 'commitTransaction', PATIENCE_MS)
    } else {
      await called(producer, 'flush', PATIENCE_MS) // so that the log has what is aborted
      await called(producer, 'abortTransaction', PATIENCE_MS)
    }
    await called(producer, 'disconnect')
  }

  call (name, ...request) {
    return called(this.admin, name, ...request)
  }
}

function called (client, name, ...request) {
  return promisify(client[name].bind(client))(...request)
}
