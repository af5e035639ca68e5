import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { framed } from "./message-reader.ts";
import { DescriptorProblem, Services } from "./services.ts";
import type { GrpcStatus } from "./status.ts";

/** The two names of the one protocol; older servers know the second alone. */
const PATHS = ["grpc.reflection.v1", "grpc.reflection.v1alpha"].map(
  (scope) => `/${scope}.ServerReflection/ServerReflectionInfo`,
);

/** Most files that one service may need. */
const MAX_FILES = 2_000;

/** Most bytes of all of them. */
const MAX_BYTES = 32 * 1024 * 1024;

/** How often what is still missing is asked for. */
const MAX_ROUNDS = 32;

const MEND = "Let the server offer reflection, or give its descriptors by `grpc.descriptor`.";

/** Sends messages to a method and gives the whole answer. @throws GatewayError where there is none. */
export type Ask = (
  path: string,
  frames: Buffer,
) => Promise<{ readonly status: GrpcStatus; readonly messages: readonly Buffer[] }>;

type Question = ServerReflectionRequest["messageRequest"];

/**
 * Asks a server for a service with all that its files import. Source: grpc/reflection/v1/reflection.proto.
 *
 * @throws DescriptorProblem: it does not tell; GatewayError: it cannot be asked.
 */
export async function reflectService(service: string, ask: Ask): Promise<Services> {
  const { path, responses } = await first(ask, { case: "fileContainingSymbol", value: service });
  const files = new Map<string, FileDescriptorProto>();
  let bytes = 0;
  const take = (all: readonly ServerReflectionResponse[]): void => {
    for (const { messageResponse } of all) {
      if (messageResponse.case === "errorResponse") {
        const { errorMessage } = messageResponse.value;
        throw new DescriptorProblem(
          `the server's reflection does not know it: ${errorMessage}`,
          "Correct `grpc.method`.",
        );
      }
      if (messageResponse.case !== "fileDescriptorResponse") continue;
      for (const file of messageResponse.value.fileDescriptorProto) {
        bytes += file.length;
        const read = fromBinary(FileDescriptorProtoSchema, file);
        files.set(read.name, read);
      }
    }
    if (files.size > MAX_FILES || bytes > MAX_BYTES)
      throw new DescriptorProblem(
        `the server's reflection gives more than ${MAX_FILES} files or ${MAX_BYTES} bytes`,
        MEND,
      );
  };
  take(responses);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const services = new Services(files.values());
    const { missing } = services;
    if (missing.length === 0) return services;
    const questions = missing.map((name): Question => ({ case: "fileByFilename", value: name }));
    take(responsesIn((await ask(path, framesOf(questions))).messages));
  }
  throw new DescriptorProblem("the server's reflection does not give all files", MEND);
}

async function first(
  ask: Ask,
  question: Question,
): Promise<{ readonly path: string; readonly responses: readonly ServerReflectionResponse[] }> {
  let refusal = "";
  for (const path of PATHS) {
    const { status, messages } = await ask(path, framesOf([question]));
    if (status.name === "OK") return { path, responses: responsesIn(messages) };
    refusal = `${status.name}${status.message === "" ? "" : `: ${status.message}`}`;
    if (status.name !== "UNIMPLEMENTED") break;
  }
  throw new DescriptorProblem(`the server does not tell what it offers by reflection (${refusal})`, MEND);
}

function framesOf(questions: readonly Question[]): Buffer {
  return Buffer.concat(
    questions.map((messageRequest) =>
      framed(toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, { messageRequest }))),
    ),
  );
}

function responsesIn(messages: readonly Buffer[]): readonly ServerReflectionResponse[] {
  try {
    return messages.map((message) => fromBinary(ServerReflectionResponseSchema, message));
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw new DescriptorProblem("the server's answer is not that of reflection", MEND);
  }
}
