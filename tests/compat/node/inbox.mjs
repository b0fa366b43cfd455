// What a member of a group was given and nobody has asked for yet, where a client calls back.

export const COPIED = Buffer.from('copy of ')

export class Inbox {
  constructor () {
    this.messages = []
    this.next = new Map() // by partition: the offset after the last one that was asked for
    this.arrived = () => {}
  }

  push (message) {
    this.messages.push(message)
    this.arrived()
  }

  /** At least one message, unless the time is over. */
  async poll (timeoutMs, count = Infinity) {
    if (!this.messages.length) {
      let timer
      await new Promise(resolve => {
        this.arrived = resolve
        timer = setTimeout(resolve, timeoutMs)
      })
      clearTimeout(timer)
    }
    const polled = this.messages.splice(0, count)
    for (const { partition, offset } of polled) this.next.set(partition, Number(offset) + 1)
    return polled
  }

  /** Exactly `count` messages; what is beyond stays. */
  async take (count) {
    const taken = []
    for (const deadline = Date.now() + 40_000; taken.length < count;) {
      if (Date.now() > deadline) throw new Error(`${taken.length} of ${count} messages came`)
      taken.push(...(await this.poll(500, count - taken.length)))
    }
    return taken
  }
}
