// The loop of a driver in JavaScript: a line of JSON in, a method called, a line of JSON out. The
// lines are described in driver.py.
import { createInterface } from 'node:readline'

export class Unsupported extends Error {}

export const encode = value => (value == null ? null : Buffer.from(value).toString('base64'))
export const decode = text => (text === null ? null : Buffer.from(text, 'base64'))

/** Until standard input ends. Whatever a client throws is an answer, and the loop goes on. */
export async function serve (client, version, lacks = []) {
  say({ version, lacks })
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const { do: call, ...request } = JSON.parse(line)
    try {
      const target = client[call] ? client : client.groups
      say({ ok: (await target[call](request)) ?? null })
    } catch (error) {
      if (error instanceof Unsupported) say({ unsupported: error.message })
      else say({ error: explain(error) })
    }
  }
  process.exit(0)
}

function say (answer) {
  process.stdout.write(JSON.stringify(answer) + '\n')
}

function explain (error) {
  const causes = (error.errors ?? []).map(explain).join('; ')
  return `${error.name}: ${error.message} ${causes}`.slice(0, 500)
}

/** Polls until there are `count`, or the time is over. */
export async function take (count, timeoutMs, poll) {
  const read = []
  const deadline = Date.now() + timeoutMs
  while (read.length < count && Date.now() < deadline) {
    read.push(...(await poll(count - read.length)))
  }
  return read
}
