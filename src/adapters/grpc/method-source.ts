import type { AdapterDeps } from "../../core/adapter.ts";
import type { Availability } from "../../core/tool.ts";
import { declaredParams } from "../shared/param-schema.ts";
import type { Channel } from "./channel.ts";
import type { DescriptorFile, DescriptorFiles } from "./descriptor-files.ts";
import type { GrpcConfig } from "./grpc-config.ts";
import { type Ask, reflectService } from "./reflection.ts";
import { DescriptorProblem, type Method, type Services, unknownFields } from "./services.ts";

/** Knows the method of one tool, from wherever its descriptors are. */
export class MethodSource implements Disposable {
  readonly #config: GrpcConfig;
  readonly #deps: AdapterDeps;
  readonly #channel: Channel;
  readonly #lease: ({ readonly file: DescriptorFile } & Disposable) | undefined;
  #services: Services | undefined;
  #method: Method | undefined;
  /** The connection that reflection was asked over. */
  #generation = -1;
  #problem: DescriptorProblem | undefined;
  #closed = false;

  constructor(config: GrpcConfig, { deps, channel, files }: MethodSourceParts) {
    this.#config = config;
    this.#deps = deps;
    this.#channel = channel;
    const { descriptor } = config;
    this.#lease = descriptor.kind === "file" ? files.open(descriptor.path, deps.clock) : undefined;
  }

  /** What keeps calls from being made; looks again, for the next time. */
  unavailable(): Availability | undefined {
    const problem = this.#problem;
    if (problem === undefined) return undefined;
    if (this.#lease !== undefined) void this.method(undefined).catch(() => undefined);
    return { state: "unavailable", reason: problem.message, mend: problem.mend };
  }

  /**
   * The method. Without `ask`, `undefined` where only the server knows it.
   *
   * @throws DescriptorProblem; what `ask` throws.
   */
  async method(ask: Ask | undefined): Promise<Method | undefined> {
    try {
      const services = this.#lease === undefined ? await this.#reflected(ask) : await this.#lease.file.services();
      if (services === undefined) return undefined;
      const method = services === this.#services ? this.#method : undefined;
      this.#method = method ?? this.#found(services);
      this.#services = services;
      this.#settle(undefined);
      return this.#method;
    } catch (error) {
      if (error instanceof DescriptorProblem) this.#settle(error);
      throw error;
    }
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#lease?.[Symbol.dispose]();
  }

  /** Asked again over each new connection, since the server may be another one then. */
  async #reflected(ask: Ask | undefined): Promise<Services | undefined> {
    if (ask === undefined) return this.#services;
    if (this.#services !== undefined && this.#generation === this.#channel.generation) return this.#services;
    const services = await reflectService(this.#config.method.service, ask);
    this.#generation = this.#channel.generation;
    return services;
  }

  #found(services: Services): Method {
    const { method: name, request, tool } = this.#config;
    const method = services.method(name);
    const params = Object.keys(declaredParams(tool.inputSchema));
    const [unknown] = request === undefined ? unknownFields(method.desc, params) : [];
    if (unknown === undefined) return method;
    throw new DescriptorProblem(`parameter ${unknown}`, "Name the field, or say by `grpc.request` where it goes.");
  }

  #settle(problem: DescriptorProblem | undefined): void {
    const changed = problem?.message !== this.#problem?.message;
    this.#problem = problem;
    if (!changed) return;
    // Later, since the registry may be in the middle of asking.
    queueMicrotask(() => {
      if (!this.#closed) this.#deps.changed();
    });
  }
}

/** What a source is made from. */
export interface MethodSourceParts {
  readonly deps: AdapterDeps;
  readonly channel: Channel;
  readonly files: DescriptorFiles;
}
