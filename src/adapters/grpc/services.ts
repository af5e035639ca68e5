import {
  create,
  createFileRegistry,
  type DescMethod,
  type DescService,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue as ProtoJson,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FileDescriptorProto,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../core/json.ts";
import { didYouMean } from "../../core/nearest.ts";
import { oneLine, textBeginning } from "../../core/text.ts";
import type { MethodName } from "./grpc-config.ts";

/** Most characters of what is wrong with a message. */
const MAX_WORDS = 300;

/** A service or method cannot be had from its descriptors. */
export class DescriptorProblem extends Error {
  /** What to do about it, one sentence. */
  readonly mend: string;

  /** `message` is one line. */
  constructor(message: string, mend: string) {
    super(message);
    this.name = "DescriptorProblem";
    this.mend = mend;
  }
}

/** The arguments are no message of the method's. */
export class RequestProblem extends Error {}

/** The answer is no message of the method's. */
export class AnswerProblem extends Error {}

/** One method, and how its messages are written and read. */
export interface Method {
  readonly desc: DescMethod;
  /** `/acme.Orders/GetOrder`. */
  readonly path: string;
  readonly registry: FileRegistry;
}

/** The services of a set of files. Services whose files are at fault do not concern the others. */
export class Services {
  readonly #files = new Map<string, FileDescriptorProto>();
  /** By the file that a service stands in. */
  readonly #registries = new Map<string, FileRegistry>();

  constructor(files: Iterable<FileDescriptorProto>) {
    for (const file of files) {
      for (const message of file.messageType) nameFields(message);
      this.#files.set(file.name, file);
    }
  }

  /** @throws DescriptorProblem: the bytes are no set of descriptors. */
  static parse(bytes: Uint8Array): Services {
    let set: FileDescriptorSet;
    try {
      set = fromBinary(FileDescriptorSetSchema, bytes);
    } catch {
      throw new DescriptorProblem("it holds no FileDescriptorSet", MAKE_DESCRIPTOR);
    }
    if (set.file.length === 0) throw new DescriptorProblem("it holds no files", MAKE_DESCRIPTOR);
    return new Services(set.file);
  }

  /** Names of all services, each with its package. */
  get names(): readonly string[] {
    return [...this.#files.values()].flatMap(servicesIn);
  }

  /** Imports that a file needs and that are not here. */
  get missing(): readonly string[] {
    const needed = [...this.#files.values()].flatMap(({ dependency }) => dependency);
    return [...new Set(needed)].filter((name) => !this.#files.has(name));
  }

  /** @throws DescriptorProblem: there is none, it streams requests, or its files are at fault. */
  method({ service, method }: MethodName): Method {
    const { desc, registry } = this.#service(service);
    const found = desc.methods.find(({ name }) => name === method);
    if (found === undefined) {
      const names = desc.methods.map(({ name }) => name);
      const hint = didYouMean(method, names) || `it has ${names.slice(0, 20).join(", ") || "none"}`;
      throw new DescriptorProblem(`service ${service} has no method "${method}"; ${hint}`, "Correct `grpc.method`.");
    }
    if (found.methodKind === "client_streaming" || found.methodKind === "bidi_streaming") {
      const text = `${service}/${method} takes a stream of requests, which no tool call is`;
      throw new DescriptorProblem(text, "Name a method that takes one request.");
    }
    return { desc: found, path: `/${service}/${method}`, registry };
  }

  #service(name: string): { readonly desc: DescService; readonly registry: FileRegistry } {
    const file = [...this.#files.values()].find((each) => servicesIn(each).includes(name));
    if (file === undefined) {
      const { names } = this;
      const hint = didYouMean(name, names) || `there are ${names.slice(0, 20).join(", ") || "none"}`;
      throw new DescriptorProblem(`there is no service "${name}"; ${hint}`, "Correct `grpc.method`.");
    }
    const registry = this.#registries.get(file.name) ?? this.#registry(file);
    this.#registries.set(file.name, registry);
    const desc = registry.getService(name);
    if (desc === undefined) throw new DescriptorProblem(`service "${name}" cannot be read`, MAKE_DESCRIPTOR);
    return { desc, registry };
  }

  /** Of one file with all that it imports. */
  #registry(root: FileDescriptorProto): FileRegistry {
    const needed = new Set<FileDescriptorProto>();
    const add = (file: FileDescriptorProto, path: ReadonlySet<string>): void => {
      if (needed.has(file) || path.has(file.name)) return;
      for (const name of file.dependency) {
        const imported = this.#files.get(name);
        if (imported === undefined) {
          throw new DescriptorProblem(`file "${file.name}" imports "${name}", which is not there`, MAKE_DESCRIPTOR);
        }
        add(imported, new Set([...path, file.name]));
      }
      needed.add(file);
    };
    add(root, new Set());
    try {
      return createFileRegistry(create(FileDescriptorSetSchema, { file: [...needed] }));
    } catch (cause) {
      throw new DescriptorProblem(`file "${root.name}" cannot be used: ${wordsOf(cause)}`, MAKE_DESCRIPTOR);
    }
  }
}

const MAKE_DESCRIPTOR =
  "Make it with its imports: `buf build -o FILE.binpb`, or `protoc --include_imports --descriptor_set_out=FILE.binpb`.";

/** Gives fields their JSON names where the descriptor has none, as that of a server's reflection may. */
function nameFields({ field, nestedType }: DescriptorProto): void {
  for (const each of field) if (each.jsonName === "") each.jsonName = jsonNameOf(each.name);
  for (const nested of nestedType) nameFields(nested);
}

/** Source: google/protobuf/descriptor.cc, `ToJsonName`. */
function jsonNameOf(name: string): string {
  return name.replace(/_+([^_]?)/g, (_, next: string) => next.toUpperCase());
}

function servicesIn({ package: scope, service }: FileDescriptorProto): readonly string[] {
  return service.map(({ name }) => (scope === "" ? name : `${scope}.${name}`));
}

/** The request message's bytes. @throws RequestProblem: `args` do not fit; the text goes on after the tool's name. */
export function encodeRequest({ desc, registry }: Method, args: JsonObject): Uint8Array {
  const unknown = unknownFields(desc, Object.keys(args))[0];
  if (unknown !== undefined) throw new RequestProblem(unknown);
  try {
    return toBinary(desc.input, fromJson(desc.input, protoJson(args), { registry, ignoreUnknownFields: false }));
  } catch (cause) {
    throw new RequestProblem(`the request is no ${desc.input.typeName}: ${wordsOf(cause)}`);
  }
}

/** What is wrong with each name that no field of the request has. */
export function unknownFields({ input }: DescMethod, names: readonly string[]): readonly string[] {
  // Well-known types have a JSON of their own.
  if (input.typeName.startsWith("google.protobuf.")) return [];
  const known = input.fields.flatMap(({ name, jsonName }) => [name, jsonName]);
  return names
    .filter((name) => !known.includes(name) && !/^\[.*\]$/.test(name))
    .map((name) => {
      const hint = didYouMean(name, known) || `its fields are ${input.fields.map((field) => field.name).join(", ")}`;
      return `\`${name}\` is no field of ${input.typeName}; ${hint}`;
    });
}

/** A message of the answer as ProtoJSON: fields without presence are there also where they have their default. @throws AnswerProblem. */
export function decodeAnswer({ desc, registry }: Method, bytes: Uint8Array): JsonValue {
  try {
    return toJson(desc.output, fromBinary(desc.output, bytes), { registry, alwaysEmitImplicit: true });
  } catch (cause) {
    throw new AnswerProblem(`is no ${desc.output.typeName}: ${wordsOf(cause)}`);
  }
}

/** Integers beyond 2^53 are text in ProtoJSON. */
function protoJson(value: JsonValue): ProtoJson {
  if (typeof value === "bigint") return value.toString();
  if (isJsonArray(value)) return value.map(protoJson);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, protoJson(each)]));
}

function wordsOf(cause: unknown): string {
  return textBeginning(oneLine(cause instanceof Error ? cause.message : "unknown problem"), MAX_WORDS);
}
