// Stands for opencode, to try its plugin: node plugin_driver.mjs STEPS PLUGIN... [run]
// A step is [hook, input, output], which is not waited for where the hook begins with &; printed is
// what became of each, and what the client was asked.
const [steps, ...rest] = process.argv.slice(2)
const { sub = {}, run } = JSON.parse(steps)
const asked = []
const hooks = {}
const call = async (hook, input, output) => {
  for (const one of hooks[hook] ?? []) await one(input, output)
}
const client = {
  session: {
    get: async ({ path }) => ({ data: { parentID: sub[path.id] } }),
    prompt: async ({ path, body }) => {
      asked.push(["prompt", path.id, body])
      const { agent, model, parts } = body
      await call("chat.message", { sessionID: path.id }, { message: { id: "msg_1", agent, model }, parts })
    },
  },
  tui: { showToast: async ({ body }) => { asked.push(["toast", body.message]) } },
}
for (const file of rest.filter((word) => word !== "run")) {
  const exported = Object.values(await import(file))
  if (exported.length !== 1) throw new Error("each export is taken for a plugin")
  const found = await exported[0]({ client, directory: process.cwd() })
  for (const [name, hook] of Object.entries(found)) (hooks[name] ??= []).push(hook)
}
const seen = [], begun = []
for (const [hook, input, output] of run) {
  try {
    if (hook.startsWith("&")) begun.push(call(hook.slice(1), input, output))
    else await call(hook, input, output)
    seen.push(output ?? null)
  } catch (error) {
    seen.push(error.message)
  }
}
await Promise.all(begun)
console.log(JSON.stringify({ seen, asked }))
