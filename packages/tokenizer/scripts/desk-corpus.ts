import { randomStream, type RandomStream } from '@tiltyard/core'

/**
 * Made-up conversations of a store desk in Qwen's XML layout: what the small policy reads and writes. All words are from the
 * lists below. A document is a list of texts between markers.
 */
export function deskCorpus(seed: number, documents: number): readonly (readonly string[])[] {
  const random = randomStream(seed, 'desk-corpus')
  return Array.from({ length: documents }, () => conversation(random))
}

/** How many of the documents are about somebody with usual names, which the vocabulary holds whole. */
const USUAL_NAMES = 0.7

/** How many of the documents show the head of the conversation, which is the same text again and again. */
const SHOWN_HEADS = 0.25

function conversation(random: RandomStream): readonly string[] {
  const pick = <T>(items: readonly T[]) => items[random.integer(items.length)]!
  const digits = (count: number) => Array.from({ length: count }, () => random.integer(10)).join('')

  const isUsual = random.next() < USUAL_NAMES
  const first = pick(isUsual ? usualFirstNames : firstNames)
  const last = pick(isUsual ? usualLastNames : lastNames)
  const key = `${first}_${last}`.toLowerCase()
  const customer = {
    id: `${key}_${digits(4)}`,
    first,
    last,
    zip: digits(5),
    email: `${key.replace('_', pick(['.', '_', '']))}${digits(pick([0, 2, 4]))}@${pick(mailHosts)}`,
  }
  const order = {
    id: `${pick(['W', '#W'])}${digits(pick([4, 7]))}`,
    status: pick(statuses),
    item: pick(products),
    price: `${digits(2)}.${digits(2)}`,
  }
  const fill = (text: string) =>
    text
      .replaceAll('{first}', customer.first)
      .replaceAll('{last}', customer.last)
      .replaceAll('{zip}', customer.zip)
      .replaceAll('{email}', customer.email)
      .replaceAll('{id}', customer.id)
      .replaceAll('{order}', order.id)
      .replaceAll('{status}', order.status)
      .replaceAll('{item}', order.item)
      .replaceAll('{price}', order.price)

  const parts: string[] = []
  if (random.next() < SHOWN_HEADS) {
    const count = pick([1, 2, 3, 3])
    const tools = random.shuffle(toolDefinitions).slice(0, count)
    const definitions = tools.map((variants) => pick(variants))
    parts.push(`system\n${toolBlock(definitions)}\n\n${pick(systemPrompts)}`, '\n')
  }
  const lookUp = pick(lookUps)
  parts.push(`user\n${fill(pick(lookUp.requests))}`, '\n')
  for (const [index, body] of lookUp.calls.entries()) {
    parts.push('assistant\n', '\n\n', '\n\n', fill(body), '\n')
    parts.push('user\n', `\n${fill(lookUp.results[index]!)}\n`, '\n')
  }
  parts.push('assistant\n', '\n\n', `\n\n${fill(pick(lookUp.answers))}`)
  return parts
}

const byName = call('find_user_id_by_name_zip', {
  first_name: '{first}',
  last_name: '{last}',
  zip: '{zip}',
})
const byEmail = call('find_user_id_by_email', { email: '{email}' })
const byOrder = call('get_order_status', { id: '{order}' })
const byUser = call('get_order_status', { id: '{id}' })
const orderDetails = call('get_order_details', { order_id: '{order}' })

const orderResult =
  '{"order_id": "{order}", "user_id": "{id}", "status": "{status}", "items": [{"name": "{item}", "price": {price}}], "total": {price}}'

const idAnswers = [
  'Your user id is {id}.',
  'The user id is {id}.',
  'Your user id is {id}.',
  'I found your account: {id}.',
  '{id}',
]

const statusAnswers = [
  'Your order is {status}.',
  'The order is {status}.',
  'Your order is {status}.',
  'Your order {order} is {status}.',
  '{status}',
]

const lookUps = [
  {
    requests: [
      "I'm {first} {last}, zip {zip}. What is my user id?",
      'I am {first} {last}, zip {zip}. What is my customer id?',
      'My name is {first} {last}, my zip code is {zip}. I forgot my user id.',
      'Hi, this is {first} {last} from {zip}. Which user id do you have for me?',
      'Please find the user id of {first} {last} in {zip}.',
      'User id of {first} {last}, zip {zip}?',
      'Can you find {first} {last}? The zip is {zip}.',
    ],
    calls: [byName],
    results: ['{id}'],
    answers: idAnswers,
  },
  {
    requests: [
      'My e-mail is {email}. What is my user id?',
      'I forgot my user id. My e-mail is {email}.',
      'Please find my account, the email address is {email}.',
      'Please find the user id of {email}.',
      'User id of {email}?',
      'Hello, which user id belongs to {email}?',
    ],
    calls: [byEmail],
    results: ['{id}'],
    answers: idAnswers,
  },
  {
    requests: [
      'Where is my order {order}?',
      "I'm waiting for order {order}. What is its status?",
      'What is the status of my order {order}?',
      'Status of order {order}?',
      'Please check order {order}.',
    ],
    calls: [byOrder],
    results: ['{status}'],
    answers: statusAnswers,
  },
  {
    requests: [
      "I'm {first} {last}, zip {zip}. Where is my order?",
      'Order status of {first} {last}, zip {zip}?',
    ],
    calls: [byName, byUser],
    results: ['{id}', '{status}'],
    answers: statusAnswers,
  },
  {
    requests: ['My e-mail is {email}. Where is my order?', 'Order status of {email}?'],
    calls: [byEmail, byUser],
    results: ['{id}', '{status}'],
    answers: statusAnswers,
  },
  {
    requests: [
      'Has my order {order} been delivered?',
      'I want to know what I paid for order {order}.',
    ],
    calls: [orderDetails],
    results: [orderResult],
    answers: [
      'Your order {order} is {status}.',
      'Order {order} is {status}, the total is {price}.',
    ],
  },
  {
    requests: [
      'I am {first} {last}, zip {zip}, email {email}. What is my customer id?',
      'My email is {email}, or find me by name: {first} {last}, {zip}.',
    ],
    calls: [byEmail, byName],
    results: ['Error: user not found', '{id}'],
    answers: [...idAnswers, 'I could not find a customer with these details.'],
  },
]

function call(name: string, args: Readonly<Record<string, string>>): string {
  const lines = Object.entries(args).map(([key, value]) => {
    return `<parameter=${key}>\n${value}\n</parameter>\n`
  })
  return `\n<function=${name}>\n${lines.join('')}</function>\n`
}

function definition(name: string, description: string, properties: Record<string, string>): string {
  const fields = Object.entries(properties).map(([key, text]) => {
    const described = text === '' ? '' : `, "description": "${text}"`
    return `"${key}": {"type": "string"${described}}`
  })
  const required = Object.keys(properties)
    .map((key) => `"${key}"`)
    .join(', ')
  return `{"type": "function", "function": {"name": "${name}", "description": "${description}", "parameters": {"type": "object", "properties": {${fields.join(', ')}}, "required": [${required}]}}}`
}

/** Each tool in several wordings. */
const toolDefinitions = [
  [
    definition('find_user_id_by_name_zip', 'User id of a customer.', {
      first_name: '',
      last_name: '',
      zip: '',
    }),
    definition('find_user_id_by_name_zip', 'Find user id by first name, last name, and zip code.', {
      first_name: 'First name',
      last_name: 'Last name',
      zip: 'Zip code',
    }),
  ],
  [
    definition('find_user_id_by_email', 'User id of a customer.', { email: '' }),
    definition('find_user_id_by_email', 'Find user id by email.', { email: 'Email address' }),
  ],
  [
    definition('get_order_status', 'Order status by order number or user id.', { id: '' }),
    definition('get_order_details', 'Get the status and details of an order.', {
      order_id: 'Order id, such as #W0000000',
    }),
  ],
]

const statuses = ['pending', 'packed', 'shipped', 'delivered', 'cancelled', 'returned', 'processed']

const systemPrompts = [
  'You work at a store desk. Look things up, then answer.',
  'You work at a store desk. Use the tools, then answer.',
  'You are a customer service agent of an online store. Look up what you need and tell the customer.',
]

function toolBlock(tools: readonly string[]): string {
  return `# Tools

You have access to the following functions:

<tools>
${tools.join('\n')}
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>`
}

const mailHosts = ['example.com', 'example.org', 'example.net', 'mail.example.com']

const usualFirstNames =
  'Aarav Ada Aiko Amir Anna Carla Chen Daiki Elif Emma Fatima Finn Hana Ivan James Juan Lea Liam Lucia Mei Mia Noah Olga Omar Raj Sara Sofia Tariq Yara Yusuf'.split(
    ' ',
  )

const usualLastNames =
  'Ahmed Brown Costa Davis Diaz Evans Garcia Gupta Haas Ito Jansen Khan Kim Lee Lopez Moore Mori Muller Novak Okafor Patel Perez Rossi Sato Silva Singh Smith Tanaka Weber Young'.split(
    ' ',
  )

export const usualNames: readonly string[] = [...usualFirstNames, ...usualLastNames]

const firstNames =
  'Ada Adil Agnes Aiko Alba Alma Amara Anton Arne Asha Bela Berta Bilal Bodil Bruno Carla Cem Chidi Clara Cosmo Dalia Dario Demet Dina Edda Eino Elif Elsa Emil Enzo Esra Fabio Fatou Felix Filip Flora Gala Gita Goran Greta Hana Hedda Henri Hugo Ida Ilse Imran Ines Ingrid Ivo Jana Jarek Jonas Jun Kaito Karim Katja Keiko Kofi Lars Leila Lena Linus Lotte Luca Luis Maja Malik Marta Matteo Mei Milan Mira Nadia Naomi Nils Nina Noor Olaf Omar Oskar Paula Pavel Petra Priya Rafael Rana Remi Rosa Ruben Sami Sana Selma Sofia Sven Tarek Thea Tomas Ulla Uma Vera Viktor Wanda Xenia Yara Yusuf Zain Zoe'.split(
    ' ',
  )

const lastNames =
  'Abe Ahlberg Akkaya Almeida Andersen Aydin Bakker Baldi Banerjee Becker Bianchi Borg Brandt Castillo Chavez Conti Costa Dahl Danso Diaz Duarte Eriksen Esposito Falk Farouk Fischer Fonseca Garcia Gomes Greco Gupta Haas Haddad Hansen Hassan Hoffmann Holm Ibrahim Ito Ivanov Jansen Johansson Kaplan Kaya Keller Kimura Klein Kovacs Kowalski Krause Kumar Larsen Lehmann Lindqvist Lopes Maier Marino Martens Mensah Mori Moreau Murphy Nakamura Navarro Nguyen Nielsen Novak Okafor Olsen Ortega Ozturk Park Patel Pereira Petrov Popescu Quist Rahman Ramos Reyes Ricci Rossi Ruiz Sahin Santos Sato Schmitt Silva Singh Soto Steiner Suzuki Tanaka Torres Ueda Vargas Vidal Wagner Weber Wolff Yamada Yilmaz Zimmer'.split(
    ' ',
  )

const products =
  'water bottle;desk lamp;office chair;running shoes;coffee maker;mechanical keyboard;jigsaw puzzle;backpack;garden hose;wall clock;bookshelf;tea kettle;hiking boots;wireless earbuds;skateboard;electric toothbrush;smart watch;action camera'.split(
    ';',
  )
