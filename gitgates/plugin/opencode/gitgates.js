// Asks `gitgates` at some events of the agent, and does what it answers. Where that program fails,
// takes too long or says nothing, nothing happens; where it is missing, that is said.
const CONFIG = {}

import { spawn, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"

const AT_ONCE = process.argv.includes("run") // ends with its first turn, and waits for no answer

const MISSING = "gitgates is not installed here: none of the gates of this repository run. "
const HOW = "uv tool install . (or: pipx install .) in a clone of gitgates"
const PERSON = { systemMessage: `${MISSING}To install it: ${HOW}` }
const AGENT = { additionalContext: `${MISSING}Tell the person that nothing is checked, and ask whether to run: ${HOW}` }
const INSTEAD = { SessionStart: { ...AGENT, ...PERSON }, Stop: PERSON } // of the answers, without the program

// Run the program; what it answers is {} if that is no JSON object. Never fails.
const run = ({ command: [program, ...args], timeout, instead }, cwd, input, atOnce) => new Promise((resolve) => {
  let output = "", timer
  const done = () => {
    clearTimeout(timer)
    try { resolve(Object(JSON.parse(output))) } catch { resolve({}) }
  }
  const how = { cwd, stdio: ["pipe", "pipe", "ignore"] }
  const failed = (error) => {
    if (error?.code === "ENOENT" && instead) output = JSON.stringify(instead)
    done()
  }
  try {
    if (atOnce) { // Bun makes no group of it; whatever kills gitgates, its gates end with it
      const end = spawnSync(program, args, { ...how, input, timeout: timeout * 1000, killSignal: "SIGKILL" })
      output = String(end.stdout)
      return failed(end.error)
    }
    const child = spawn(program, args, { ...how, detached: true })
    const kill = () => { try { process.kill(-child.pid, "SIGKILL") } catch {} } // its whole group
    timer = setTimeout(() => { kill(); done() }, timeout * 1000) // what was said until then counts
    child.on("error", failed).on("close", done)
    child.stdout.setEncoding("utf8").on("data", (text) => { output += text })
    child.stdin.on("error", () => {}).end(input)
  } catch { done() }
})

// A matcher is some names, `write|edit`, or an expression that is searched for; without one, all fit.
const fits = ({ matcher }, tool) => matcher === undefined
  || (/^[\w|-]+$/.test(matcher) ? matcher.split("|").includes(tool) : new RegExp(matcher).test(tool))

const quiet = (hook) => async (...args) => { try { return await hook(...args) } catch {} }

export const GitGates = async ({ client, directory }) => {
  const loaded = (globalThis[Symbol.for("gitgates")] ??= new WeakMap())
  const configs = loaded.get(client) ?? []
  loaded.set(client, configs)
  if (configs.push(CONFIG) > 1) return {} // of the project and of the user: the first asks for both

  const created = new Set(), parents = new Map(), agents = new Map() // of sessions
  const turns = new Map(), reasons = new Map() // of those at work; of those that are kept at it
  const parentOf = (id) => {
    const find = () => client.session.get({ path: { id } }).then((found) => found.data?.parentID, () => {})
    if (!parents.has(id)) parents.set(id, find())
    return parents.get(id)
  }
  const rootOf = async (id) => { // a sub-agent has a session of its own, below that of its agent
    for (let parent; (parent = await parentOf(id)); ) id = parent
    return id
  }
  const show = quiet((message) => {
    if (AT_ONCE) console.error(message)
    else return client.tui.showToast({ body: { message, variant: "warning" } })
  })
  const ask = async (event, id, said) => {
    const config = configs.find(({ hooks }) => hooks[event] && fits(hooks[event], said.tool_name))
    if (!config) return {}
    const session = await rootOf(id)
    const who = session === id ? {} : { agent_id: id, agent_type: agents.get(id) }
    const head = { hook_event_name: event, session_id: session, event_id: randomUUID(), cwd: directory }
    const how = { command: config.command, timeout: config.hooks[event].timeout, instead: INSTEAD[event] }
    const input = JSON.stringify({ ...head, ...who, ...said })
    const answer = await run(how, directory, input, AT_ONCE && event === "Stop")
    if (answer.systemMessage) await show(answer.systemMessage)
    return answer
  }
  const askOfTool = (event, input, args) =>
    ask(event, input.sessionID, { tool_name: input.tool, tool_input: args, tool_use_id: input.callID })
  const before = quiet(async (input, output) => { // why the call is refused
    const { decision, reason, hookSpecificOutput } = await askOfTool("PreToolUse", input, output.args)
    if (decision === "block") return reason
    Object.assign(output.args, hookSpecificOutput?.updatedInput)
  })
  const stop = async (id) => {
    const turn = turns.get(id)
    turns.delete(id)
    if (!turn) return // it was interrupted, or is a sub-agent's
    const said = { stop_hook_active: turn.again, last_assistant_message: turn.said }
    const { decision, reason } = await ask("Stop", id, said)
    if (decision !== "block" || turns.has(id)) return // has: the person has gone on meanwhile
    if (AT_ONCE && (CONFIG.host === "opencode" || turn.again)) return show(reason) // it ends all the same
    reasons.set(id, reason)
    const { agent, model } = turn
    await client.session.prompt({ path: { id }, body: { agent, model, parts: [{ type: "text", text: reason }] } })
  }
  return {
    event: quiet(async ({ event: { type, properties } }) => {
      if (type === "session.created") created.add(properties.info.id)
      if (type === "session.error") turns.delete(properties.sessionID)
      if (type === "session.idle") await stop(properties.sessionID)
    }),
    "chat.message": quiet(async ({ sessionID }, { message, parts }) => {
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = typed.map((part) => part.text).join("\n"), again = reasons.get(sessionID) === prompt
      const { agent, model } = message, isNew = !agents.has(sessionID), told = []
      reasons.delete(sessionID)
      agents.set(sessionID, agent)
      const isRoot = !(await parentOf(sessionID)), source = created.has(sessionID) ? "startup" : "resume"
      if (isRoot) turns.set(sessionID, { again, agent, model })
      if (again) return // our own reason
      if (isRoot && isNew) told.push(await ask("SessionStart", sessionID, { source }))
      if (isRoot) told.push(await ask("UserPromptSubmit", sessionID, { prompt }))
      else told.push(await ask("SubagentStart", sessionID, {}))
      const text = told.map((answer) => answer.additionalContext).filter(Boolean).join("\n\n")
      const id = `prt_${(parts.at(-1) ?? message).id.slice(4, 16)}zzzzzzzzzzzzzz` // parts are sorted by id
      if (text) parts.push({ id, messageID: message.id, sessionID, type: "text", synthetic: true, text })
    }),
    "tool.execute.before": async (input, output) => {
      const reason = await before(input, output)
      if (reason) throw new Error(reason)
    },
    "tool.execute.after": quiet(async (input, output) => {
      const { additionalContext } = await askOfTool("PostToolUse", input, input.args)
      if (additionalContext) output.output = `${output.output ?? ""}\n\n${additionalContext}`
    }),
    "experimental.text.complete": quiet(({ sessionID }, { text }) => {
      if (turns.has(sessionID)) turns.get(sessionID).said = text
    }),
    "shell.env": quiet(async ({ sessionID }, { env }) => {
      if (sessionID) env.GITGATES_SESSION = await rootOf(sessionID)
    }),
  }
}
