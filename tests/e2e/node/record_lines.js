// The node side of clients/record_lines.py, which says what the files and steps are.

"use strict";

const fs = require("node:fs");

const text = (data) => (data === null || data === undefined ? "-" : Buffer.from(data).toString("base64"));
const bytes = (field) => (field === "-" ? null : Buffer.from(field, "base64"));

// A record has partition, offset and timestamp as BigInt or number, key and value as Buffer or null, and headers as a
// list of [name, Buffer or null].
function toLine(record) {
  const headers = record.headers.map(([name, value]) => `${text(name)}:${text(value)}`).join(",");
  const { partition, offset, timestamp } = record;
  return [partition, offset, timestamp, text(record.key), text(record.value), headers].join("\t");
}

function fromLine(line) {
  const [partition, offset, timestamp, key, value, headers] = line.split("\t");
  return {
    partition: Number(partition),
    offset: Number(offset),
    timestamp: Number(timestamp),
    key: bytes(key),
    value: bytes(value),
    headers: headers === "" ? [] : headers.split(",").map((pair) => {
      const [name, content] = pair.split(":");
      return [bytes(name).toString(), bytes(content)];
    }),
  };
}

function readRecords(path) {
  const content = fs.readFileSync(path, "ascii");
  return content === "" ? [] : content.slice(0, -1).split("\n").map(fromLine);
}

function writeRecords(path, records) {
  fs.writeFileSync(path, records.map((record) => (record === null ? "-" : toLine(record)) + "\n").join(""));
}

// Writes the lines of a member step, each to the file at once. A place is [topic, partition] or with an offset.
class MemberLog {
  constructor(path) {
    this.path = path;
  }

  mustStop() {
    return fs.existsSync(this.path + ".stop");
  }

  assigned(places, member) {
    this.write("assigned", "-", member, MemberLog.places(places));
  }

  revoked(places) {
    this.write("revoked", MemberLog.places(places));
  }

  records(topic, records) {
    fs.appendFileSync(this.path, records.map((record) => `${Date.now()}\trecord\t${topic}\t${toLine(record)}\n`).join(""));
  }

  committed(places) {
    this.write("committed", MemberLog.places(places));
  }

  refused(error) {
    this.write("refused", String(error).replace(/\s+/g, " "));
  }

  left() {
    this.write("left");
  }

  write(...fields) {
    fs.appendFileSync(this.path, [Date.now(), ...fields].join("\t") + "\n");
  }

  static places(places) {
    return places.map((place) => place.join(":")).sort().join(",");
  }
}

function options(field) {
  return Object.fromEntries(field.split(",").filter(Boolean).map((option) => option.split("=")));
}

async function runSteps(driver, path) {
  for (const line of fs.readFileSync(path, "utf8").trimEnd().split("\n")) {
    const step = line.split("\t");
    switch (step[0]) {
      case "create":
        await driver.create(step[1], Number(step[2]));
        break;
      case "delete":
        await driver.delete(step[1]);
        break;
      case "produce":
        writeRecords(step[4], await driver.produce(step[1], step[2], readRecords(step[3])));
        break;
      case "consume":
        writeRecords(step[3], await driver.consume(step[1], Number(step[2])));
        break;
      case "member":
        await driver.member(step[1], step[2].split(","), options(step[3]), new MemberLog(step[4]));
        break;
      default:
        throw new Error(`unknown step ${step[0]}`);
    }
  }
}

module.exports = { runSteps };
