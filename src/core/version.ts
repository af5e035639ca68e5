/** Version of the product: the one of package.json. */
export const VERSION = "0.1.0";
