import type { StoredRegistration } from "../../src/core/store.ts";

/** A registration with every field set, but for what a test gives. */
export function sampleRegistration(name: string, more: Partial<StoredRegistration> = {}): StoredRegistration {
  return {
    name,
    text: `name: ${name}\ndescription: 查订单 "quoted" \u0000 \u2028 871234567890123457\r\n`,
    format: "yaml",
    principal: "anonymous",
    createTimeMs: 1_767_225_600_000,
    updateTimeMs: 1_767_225_600_001.5,
    leaseExpireTimeMs: 1_767_225_660_000,
    ...more,
  };
}
