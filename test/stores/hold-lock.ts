import { systemClock } from "../../src/core/clock.ts";
import { lockFolder } from "../../src/stores/folder-lock.ts";

// Holds the lock of a folder until it is killed, and says so.
await lockFolder(process.argv[2] ?? "", systemClock);
process.stdout.write("held\n");
