import { expect, test } from 'vitest'

import { describeAnswer, parseListPage } from '../src/answers.ts'

const page = `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b&#x2B;c==</NextContinuationToken>
<Contents><Key>runs/%7E41%20b+c</Key><LastModified>2026-11-29T12:00:00.000Z</LastModified><Size>12</Size></Contents>
<Contents><Key>runs/two</Key><LastModified>2026-11-29T12:00:01.000Z</LastModified><Size>0</Size></Contents>
<CommonPrefixes><Prefix>runs/x/</Prefix></CommonPrefixes></ListBucketResult>`

test('a page of a listing is read', () => {
  expect(parseListPage(Buffer.from(page))).toEqual({
    objects: [
      { key: 'runs/~41 b c', bytes: 12, modified: Date.UTC(2026, 10, 29, 12) },
      { key: 'runs/two', bytes: 0, modified: Date.UTC(2026, 10, 29, 12, 0, 1) },
    ],
    prefixes: ['runs/x/'],
    isTruncated: true,
    nextToken: 'a&b+c==',
  })
})

test('an answer that is no listing is refused, not taken for an empty one', () => {
  expect(() => parseListPage(Buffer.from('<html>Welcome</html>'))).toThrow('no listing')
})

const answer = (body: string) => ({
  status: 403,
  headers: new Headers(),
  body: Buffer.from(body),
})

test('an error is told in one line; a page of HTML by its status', () => {
  expect(
    describeAnswer(
      answer('<Error><Code>AccessDenied</Code><Message>no &lt;way&gt;</Message></Error>'),
    ),
  ).toBe('403 AccessDenied (no <way>)')
  expect(describeAnswer(answer('<html>'))).toBe('403')
})
