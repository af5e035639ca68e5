import type { ConfigIssue } from "../../core/adapter.ts";
import { isJsonObject, type JsonObject, ownValue } from "../../core/json.ts";

/** Reads the block `mcp` of a declaration, and keeps what is wrong with it. */
export class McpChecker {
  readonly block: JsonObject;
  readonly issues: ConfigIssue[] = [];
  readonly warnings: ConfigIssue[] = [];
  /** Where a credential by role goes. */
  readonly byRole = "`auth.bearer` of a remote server";

  constructor(block: JsonObject) {
    this.block = block;
  }

  /** `pointer` is within the block. */
  issue(pointer: string, message: string): void {
    this.issues.push({ pointer: `/mcp${pointer}`, message });
  }

  warn(pointer: string, message: string): void {
    this.warnings.push({ pointer: `/mcp${pointer}`, message });
  }

  text(key: string): string | undefined {
    const value = ownValue(this.block, key);
    return typeof value === "string" ? value : undefined;
  }

  object(key: string): JsonObject {
    const value = ownValue(this.block, key);
    return value !== undefined && isJsonObject(value) ? value : {};
  }

  has(key: string): boolean {
    return Object.hasOwn(this.block, key);
  }
}
