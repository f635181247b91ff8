// Runs a WebAssembly program under node: node wasi.mjs PROGRAM.wasm [ARGUMENT...]
// Just enough of WASI (preview 1) for a program without files: arguments, a clock, stdout and stderr, exit.
import { readFileSync, writeSync } from "node:fs";

const [program, ...args] = process.argv.slice(2);
let memory;
const view = () => new DataView(memory.buffer);
const bytes = [program, ...args].map((text) => new TextEncoder().encode(text + "\0"));
const BAD_FILE = 8, OK = 0;

const wasi = {
  args_sizes_get(count, size) {
    view().setUint32(count, bytes.length, true);
    view().setUint32(size, bytes.reduce((sum, b) => sum + b.length, 0), true);
    return OK;
  },
  args_get(pointers, to) {
    for (const b of bytes) {
      view().setUint32(pointers, to, true);
      new Uint8Array(memory.buffer).set(b, to);
      pointers += 4;
      to += b.length;
    }
    return OK;
  },
  environ_sizes_get(count, size) {
    view().setUint32(count, 0, true);
    view().setUint32(size, 0, true);
    return OK;
  },
  environ_get: () => OK,
  clock_time_get(id, precision, to) {
    view().setBigUint64(to, BigInt(Math.round(performance.now() * 1e6)), true);
    return OK;
  },
  fd_write(fd, vectors, count, written) {
    if (fd !== 1 && fd !== 2) return BAD_FILE;
    let sum = 0;
    for (let i = 0; i < count; i++, vectors += 8) {
      const at = view().getUint32(vectors, true), length = view().getUint32(vectors + 4, true);
      for (let done = 0; done < length; ) done += writeSync(fd, new Uint8Array(memory.buffer, at + done, length - done));
      sum += length;
    }
    view().setUint32(written, sum, true);
    return OK;
  },
  fd_close: () => BAD_FILE,
  fd_seek: () => BAD_FILE,
  fd_fdstat_get: () => BAD_FILE,
  fd_fdstat_set_flags: () => BAD_FILE,
  proc_exit: (status) => process.exit(status),
};

const module = new WebAssembly.Module(readFileSync(program));
const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi });
memory = instance.exports.memory;
instance.exports._start();
