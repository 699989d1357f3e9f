// Prints a recording read by @mcap/core, by its indexes and from beginning to end, as JSON: `node
// mcap.js FILE`. See tests/unit/recordings/test_foreign.py.

import {open} from 'node:fs/promises';
import {argv, stdout} from 'node:process';

import {McapIndexedReader, McapStreamReader} from '@mcap/core';

/** @typedef {{count: number, bytes: number, first: string, last: string}} Seen */

/** @param {Map<string, Seen>} topics @param {string} topic @param {{logTime: bigint, data: Uint8Array}} message */
function note(topics, topic, {logTime, data}) {
  const seen = topics.get(topic) ?? {count: 0, bytes: 0, first: String(logTime), last: ''};
  seen.count += 1;
  seen.bytes += data.byteLength;
  seen.last = String(logTime);
  topics.set(topic, seen);
}

/** @param {import('node:fs/promises').FileHandle} file */
async function byIndex(file) {
  const reader = await McapIndexedReader.Initialize({readable: {
    size: async () => BigInt((await file.stat()).size),
    read: async (offset, size) => {
      const body = new Uint8Array(Number(size));
      await file.read(body, 0, body.byteLength, Number(offset));
      return body;
    },
  }});
  const topics = new Map();
  let beforeNs = 0n;
  for await (const message of reader.readMessages()) {
    if (message.logTime < beforeNs) throw new Error('not in the order of time');
    beforeNs = message.logTime;
    note(topics, reader.channelsById.get(message.channelId)?.topic ?? '', message);
  }
  const metadata = [];
  for await (const one of reader.readMetadata()) metadata.push(one.name);
  return {topics: Object.fromEntries(topics), metadata, chunks: reader.chunkIndexes.length};
}

/** @param {Uint8Array} body */
function fromBeginningToEnd(body) {
  const reader = new McapStreamReader({validateCrcs: true});
  reader.append(body);
  const topics = new Map();
  const [channels, schemas] = [new Map(), new Map()];
  for (let record; (record = reader.nextRecord());) {
    if (record.type === 'Schema') schemas.set(record.id, record);
    if (record.type === 'Channel') channels.set(record.id, record);
    if (record.type === 'Message') note(topics, channels.get(record.channelId).topic, record);
    if (record.type === 'Message' && channels.get(record.channelId).messageEncoding === 'json') {
      JSON.parse(new TextDecoder().decode(record.data));
    }
  }
  for (const {encoding, data} of schemas.values()) {
    if (encoding === 'jsonschema') JSON.parse(new TextDecoder().decode(data));
  }
  return {topics: Object.fromEntries(topics), done: reader.done(), schemas: schemas.size};
}

const file = await open(argv[2]);
const indexed = await byIndex(file);
const streamed = fromBeginningToEnd(new Uint8Array(await file.readFile()));
await file.close();
stdout.write(JSON.stringify({indexed, streamed}));
