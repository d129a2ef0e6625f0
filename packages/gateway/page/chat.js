// A page to talk to one policy, or to two side by side. Whatever a policy says is shown as text, never as markup.

const at = (id) => document.getElementById(id)
const sides = ['left', 'right'].map((name) => ({
  select: at(name),
  view: at(`${name}-side`),
  messages: [],
  /** Calls of the newest reply that a person has not answered yet. */
  open: [],
}))
let running

/** An element with a class and, as text, its content. */
function element(tag, className, text = '') {
  const made = document.createElement(tag)
  made.className = className
  made.textContent = text
  return made
}

function headers() {
  const key = at('key').value.trim()
  return {
    'content-type': 'application/json',
    ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
  }
}

async function loadModels() {
  at('problem').textContent = ''
  const response = await fetch('/v1/models', { headers: headers() })
  const body = await response.json()
  if (!response.ok) throw new Error(body.error.message)
  const names = body.data.map(({ id }) => id)
  for (const [index, { select }] of sides.entries()) {
    const options = names.map((name) => new Option(name, name))
    if (index === 1) options.unshift(new Option('nobody', ''))
    select.replaceChildren(...options)
  }
  // Several versions are there to be compared.
  const [, right] = sides
  right.select.value = names[1] ?? ''
  right.view.hidden = right.select.value === ''
}

/** A message on a side; gives the place for its text. */
function show(side, role, text, who = role) {
  const box = element('div', `message ${role}`)
  const content = element('pre', 'content', text)
  box.append(element('div', 'who', who), content)
  side.view.append(box)
  box.scrollIntoView({ block: 'nearest' })
  return { box, content }
}

function readTools() {
  const text = at('tools').value.trim()
  if (text === '') return []
  return JSON.parse(text).map((definition) => ({ type: 'function', function: definition }))
}

/** The data of the events of a response, as they come. */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    const lines = (rest + value).split('\n')
    rest = lines.pop()
    for (const line of lines) {
      if (!line.startsWith('data: ')) continue
      const data = line.slice('data: '.length)
      if (data === '[DONE]') return
      yield JSON.parse(data)
    }
  }
}

/** Lets the side's policy go on, and shows its reply as it comes. */
async function answer(side, tools, signal) {
  const system = at('system').value
  const response = await fetch('/v1/chat/completions', {
    method: 'POST',
    headers: headers(),
    signal,
    body: JSON.stringify({
      model: side.select.value,
      stream: true,
      temperature: Number(at('temperature').value),
      messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...side.messages],
      ...(tools.length === 0 ? {} : { tools }),
    }),
  })
  if (!response.ok) throw new Error((await response.json()).error.message)
  const version = response.headers.get('x-tiltyard-policy-version')
  const { box, content } = show(side, 'assistant', '', `${side.select.value} (${version})`)
  const message = { role: 'assistant', content: '' }
  let thought
  for await (const event of eventsOf(response)) {
    if (event.error) throw new Error(event.error.message)
    const [choice] = event.choices
    if (choice === undefined) continue
    const { delta } = choice
    if (delta.reasoning_content) {
      thought ??= box.insertBefore(element('pre', 'reasoning'), content)
      thought.textContent += delta.reasoning_content
      message.reasoning_content = thought.textContent
    }
    if (delta.content) {
      message.content += delta.content
      content.textContent = message.content
    }
    for (const piece of delta.tool_calls ?? []) {
      message.tool_calls ??= []
      const call = (message.tool_calls[piece.index] ??= {
        ...piece,
        function: { ...piece.function, arguments: '' },
      })
      call.function.arguments += piece.function.arguments
    }
    if (choice.finish_reason === 'length') content.textContent += ' […]'
  }
  side.messages.push(message)
  for (const call of message.tool_calls ?? []) showCall(side, box, call)
  side.open = [...(message.tool_calls ?? [])]
}

/** A call, with a field for the tool's answer. */
function showCall(side, box, call) {
  const field = element('textarea', 'result')
  field.rows = 2
  field.setAttribute('aria-label', `Answer of ${call.function.name}`)
  field.placeholder = 'The tool’s answer'
  const send = element('button', '', 'Answer')
  send.type = 'button'
  send.addEventListener('click', () => {
    field.disabled = true
    send.disabled = true
    side.messages.push({ role: 'tool', tool_call_id: call.id, content: field.value })
    show(side, 'tool', field.value, call.function.name)
    side.open = side.open.filter((other) => other !== call)
    if (side.open.length === 0) void goOn([side])
  })
  box.append(
    element('pre', 'call', `${call.function.name}(${call.function.arguments})`),
    field,
    send,
  )
}

/** A conversation from its start. */
function begin(side) {
  side.messages = []
  side.open = []
  side.view.replaceChildren()
}

async function goOn(speaking) {
  running = new AbortController()
  at('stop').disabled = false
  at('problem').textContent = ''
  try {
    const tools = readTools()
    await Promise.all(speaking.map((side) => answer(side, tools, running.signal)))
  } catch (error) {
    running.abort()
    if (error.name !== 'AbortError') at('problem').textContent = error.message
  }
  at('stop').disabled = true
}

at('say').addEventListener('submit', (event) => {
  event.preventDefault()
  const speaking = sides.filter(({ select }) => select.value !== '')
  if (speaking.some(({ open }) => open.length > 0)) {
    at('problem').textContent = 'Answer the calls first.'
    return
  }
  const words = at('words').value
  at('words').value = ''
  for (const side of speaking) {
    side.messages.push({ role: 'user', content: words })
    show(side, 'user', words)
  }
  void goOn(speaking)
})
at('stop').addEventListener('click', () => running?.abort())
at('right').addEventListener('change', () => {
  const [, right] = sides
  right.view.hidden = right.select.value === ''
  begin(right)
})
at('clear').addEventListener('click', () => {
  for (const side of sides) begin(side)
})
at('words').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  at('say').requestSubmit()
})
at('key').addEventListener('change', () => void loadModels().catch(report))

function report(error) {
  at('problem').textContent = error.message
}

void loadModels().catch(report)
