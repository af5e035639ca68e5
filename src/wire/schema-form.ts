import { SchemaForm } from "../../gen/toolgate/v1/tool_pb.ts";
import { requestInvalid } from "./request-error.ts";

/** What a listing has of a tool's schemas: those of arguments as declared or as every provider takes them, or none. */
export type ListedSchemas = "declared" | "provider" | "omitted";

/** What a request asks for. @throws GatewayError REQUEST_INVALID for a form that does not exist. */
export function listedSchemas(request: {
  readonly schemaForm: SchemaForm;
  readonly omitSchemas?: boolean;
}): ListedSchemas {
  const form = formOf(request.schemaForm);
  return request.omitSchemas === true ? "omitted" : form;
}

function formOf(form: SchemaForm): ListedSchemas {
  switch (form) {
    case SchemaForm.UNSPECIFIED:
    case SchemaForm.DECLARED:
      return "declared";
    case SchemaForm.PROVIDER:
      return "provider";
    default:
      throw requestInvalid("schema_form", "UNKNOWN_VALUE", `must be DECLARED (1) or PROVIDER (2), got ${String(form)}`);
  }
}
