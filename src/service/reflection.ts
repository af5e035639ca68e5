import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type { ServerReflection, ServerReflectionRequest } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import type { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { rpcOf } from "./connect-context.ts";
import type { Service } from "./service.ts";

type Question = Pick<ServerReflectionRequest, "host"> & {
  readonly messageRequest:
    | Exclude<ServerReflectionRequest["messageRequest"], { case: "fileContainingExtension" }>
    | {
        readonly case: "fileContainingExtension";
        readonly value: { readonly containingType: string; readonly extensionNumber: number };
      };
};

/** Fits the responses of both versions. */
type Answer =
  | { readonly case: "fileDescriptorResponse"; readonly value: { readonly fileDescriptorProto: Uint8Array[] } }
  | {
      readonly case: "allExtensionNumbersResponse";
      readonly value: { readonly baseTypeName: string; readonly extensionNumber: number[] };
    }
  | { readonly case: "listServicesResponse"; readonly value: { readonly service: { readonly name: string }[] } }
  | { readonly case: "errorResponse"; readonly value: { readonly errorCode: number; readonly errorMessage: string } };

/** What the described services are made of. */
interface Index {
  readonly services: readonly string[];
  readonly files: ReadonlyMap<string, DescFile>;
  readonly symbols: ReadonlyMap<string, DescFile>;
  /** By extended type, then by number. */
  readonly extensions: ReadonlyMap<string, ReadonlyMap<number, DescFile>>;
}

/** Server reflection, both versions: they differ in nothing but their package. */
export interface Reflection {
  readonly v1: Service<typeof ServerReflection>;
  readonly v1alpha: Service<typeof ServerReflectionAlpha>;
}

/** Reflection of the services given. Source: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md. */
export function createReflection(services: readonly DescService[]): Reflection {
  const index = indexServices(services);

  async function* answers<Q extends Question>(requests: AsyncIterable<Q>) {
    const sent = new Set<string>();
    for await (const request of requests) {
      yield { validHost: request.host, originalRequest: request, messageResponse: answer(request, index, sent) };
    }
  }

  return {
    v1: {
      serverReflectionInfo: (requests, { values }) => {
        rpcOf(values).endWithGateway();
        return answers(requests);
      },
    },
    v1alpha: {
      serverReflectionInfo: (requests, { values }) => {
        rpcOf(values).endWithGateway();
        return answers(requests);
      },
    },
  };
}

function answer({ messageRequest }: Question, index: Index, sent: Set<string>): Answer {
  switch (messageRequest.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.services.map((name) => ({ name })) } };
    case "fileByFilename":
      return descriptors(index.files.get(messageRequest.value), sent);
    case "fileContainingSymbol":
      return descriptors(index.symbols.get(messageRequest.value), sent);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = messageRequest.value;
      return descriptors(index.extensions.get(containingType)?.get(extensionNumber), sent);
    }
    case "allExtensionNumbersOfType": {
      const baseTypeName = messageRequest.value;
      if (!index.symbols.has(baseTypeName)) return NOT_FOUND;
      const extensionNumber = [...(index.extensions.get(baseTypeName)?.keys() ?? [])];
      return { case: "allExtensionNumbersResponse", value: { baseTypeName, extensionNumber } };
    }
    case undefined:
      return failure(Code.InvalidArgument, "the request asks for nothing");
  }
}

/** The file and what it needs, without what this stream has had. */
function descriptors(file: DescFile | undefined, sent: Set<string>): Answer {
  if (file === undefined) return NOT_FOUND;
  const fileDescriptorProto = [encode(file)];
  const add = (dependency: DescFile): void => {
    if (sent.has(dependency.proto.name)) return;
    sent.add(dependency.proto.name);
    if (dependency !== file) fileDescriptorProto.push(encode(dependency));
    dependency.dependencies.forEach(add);
  };
  // The file asked for is sent again if it is asked for again.
  sent.delete(file.proto.name);
  add(file);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function encode(file: DescFile): Uint8Array {
  return toBinary(FileDescriptorProtoSchema, file.proto);
}

function failure(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

const NOT_FOUND = failure(Code.NotFound, "not known here");

function indexServices(services: readonly DescService[]): Index {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  const visit = (file: DescFile): void => {
    if (files.has(file.proto.name)) return;
    files.set(file.proto.name, file);
    for (const name of symbolsOf(file)) symbols.set(name, file);
    for (const type of nestedTypes(file)) {
      if (type.kind !== "extension") continue;
      const numbers = extensions.get(type.extendee.typeName) ?? new Map<number, DescFile>();
      extensions.set(type.extendee.typeName, numbers.set(type.number, file));
    }
    file.dependencies.forEach(visit);
  };
  for (const service of services) visit(service.file);
  return { services: services.map((service) => service.typeName), files, symbols, extensions };
}

/** Full names of everything a file declares. */
function* symbolsOf(file: DescFile): Generator<string> {
  for (const type of nestedTypes(file)) {
    yield type.typeName;
    if (type.kind === "message") {
      for (const member of type.members) yield `${type.typeName}.${member.name}`;
    } else if (type.kind === "service") {
      for (const method of type.methods) yield `${type.typeName}.${method.name}`;
    } else if (type.kind === "enum") {
      // Values stand beside their enum, not in it.
      const scope = type.typeName.slice(0, type.typeName.lastIndexOf(".") + 1);
      for (const value of type.values) yield scope + value.name;
    }
  }
}
