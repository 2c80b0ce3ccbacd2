import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { findProgram } from './programs.ts';
import { portkeyFolder } from './targets/others.ts';
import { PACKAGE } from './targets/tollgate.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly loadBefore: number;
  readonly versions: Readonly<Record<string, string>>;
}

/** Describes the machine and programs that figures depend on. */
export function describeMachine(): Machine {
  const [first] = os.cpus();
  return {
    cpu: first?.model.trim() ?? 'unknown',
    cores: os.cpus().length,
    memoryGb: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()}`,
    loadBefore: os.loadavg()[0] ?? 0,
    versions: {
      tollgate: tried(() => execFileSync('git', ['-C', PACKAGE, 'rev-parse', '--short', 'HEAD']).toString().trim()),
      node: process.versions.node,
      ...Object.fromEntries(['koa', '@koa/router', 'undici'].map((name) => [name, versionOf(name)])),
      nginx: tried(() => readNginx(findProgram('nginx'))),
      portkey: tried(() => readVersion(path.join(portkeyFolder() ?? '', 'package.json'))),
    },
  };
}

function readNginx(program: string | undefined): string {
  if (!program) return 'not installed';
  // nginx prints its version on standard error.
  const text = execFileSync('sh', ['-c', `"${program}" -v 2>&1`]).toString();
  return /nginx\/([\d.]+)/.exec(text)?.[1] ?? text;
}

function versionOf(name: string): string {
  return tried(() => readVersion(path.join(PACKAGE, 'node_modules', name, 'package.json')));
}

function readVersion(file: string): string {
  return String(JSON.parse(readFileSync(createRequire(import.meta.url).resolve(file), 'utf8')).version);
}

function tried(read: () => string): string {
  try {
    return read();
  } catch {
    return 'not installed';
  }
}
