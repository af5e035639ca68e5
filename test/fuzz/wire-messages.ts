import { create, toBinary } from "@bufbuild/protobuf";
import {
  CallRequestSchema,
  CallStreamRequestSchema,
  GetRequestSchema,
  ListRequestSchema,
  RegisterRequestSchema,
  UnregisterRequestSchema,
  WatchRequestSchema,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { Dice } from "./dice.ts";

const SERVICE = "/toolgate.v1.ToolGatewayService";

/** Paths of the methods a gateway serves, and of some it does not. */
export const METHODS: readonly string[] = [
  ...["Call", "CallStream", "Call", "CallStream", "List", "Get", "Watch", "Register", "Unregister"].map(
    (method) => `${SERVICE}/${method}`,
  ),
  "/toolgate.v1.OperatorService/Explain",
  "/toolgate.v1.OperatorService/Diagnose",
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/Watch",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  `${SERVICE}/Nothing`,
  "/x",
];

/** Bytes of a message, whole or with slips. No declaration in them can load: it would be called, and reach out. */
export function makeMessage(dice: Dice): Uint8Array {
  const bytes = wholeMessage(dice);
  return dice.oneIn(2) ? bytes : slipped(dice, bytes);
}

function wholeMessage(dice: Dice): Uint8Array {
  const name = dice.pick(["echo", "echo", "nothing", "", dice.plainText()]);
  const value = dice.pick(["{}", '{"a":1}', "{", "[".repeat(200), dice.text().toWellFormed()]);
  const invocation = {
    name,
    arguments: { case: "argumentsJson" as const, value },
    requestId: dice.oneIn(4) ? dice.plainText() : "",
    validateOnly: dice.oneIn(4),
    explain: dice.oneIn(4),
  };
  switch (dice.number(9)) {
    case 0:
      return toBinary(
        ListRequestSchema,
        create(ListRequestSchema, { pageSize: dice.number(2_000) - 500, pageToken: name }),
      );
    case 1:
      return toBinary(GetRequestSchema, create(GetRequestSchema, { name }));
    case 2:
      return toBinary(WatchRequestSchema, create(WatchRequestSchema, { afterRevision: BigInt(dice.number(100)) }));
    case 3: {
      const declaration = { case: "declarationYaml" as const, value: `name: t\ntype: http\n${value}\n` };
      return toBinary(RegisterRequestSchema, create(RegisterRequestSchema, { declaration }));
    }
    case 4:
      return toBinary(UnregisterRequestSchema, create(UnregisterRequestSchema, { name, allowMissing: true }));
    case 5:
    case 6: {
      const resumeWindow = { seconds: BigInt(dice.number(5)), nanos: 0 };
      return toBinary(CallStreamRequestSchema, create(CallStreamRequestSchema, { invocation, resumeWindow }));
    }
    default:
      return toBinary(CallRequestSchema, create(CallRequestSchema, { invocation }));
  }
}

/** Bytes changed, left out, put in: wrong lengths, wire types, numbers of fields, and groups without an end. */
function slipped(dice: Dice, bytes: Uint8Array): Uint8Array {
  const list = [...bytes];
  for (let left = 1 + dice.number(5); left > 0; left--) {
    const at = dice.number(list.length + 1);
    const byte = dice.pick([0, 0x0a, 0x7f, 0x80, 0xff, 0x0b, 0x0c, 0x0f, dice.number(256)]);
    if (dice.oneIn(3)) list.splice(at, 1 + dice.number(4));
    else if (dice.oneIn(2)) list.splice(at, 1, byte);
    else list.splice(at, 0, ...Array.from({ length: 1 + dice.number(dice.oneIn(8) ? 300 : 3) }, () => byte));
  }
  return Uint8Array.from(list);
}
