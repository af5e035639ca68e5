import type { RequestListener } from "node:http";
import { createServer, type Server } from "node:https";

/** A certificate for localhost and 127.0.0.1 that vouches for itself, valid from 2020 to 2120, and its key: for tests alone. */
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBaDCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMjHhyvr0r8rNaTB
x0phW+ePH30zOXBJw2xi7HMblrrBO0AvkfY+bPV1Hme6Tr7zkurMwZukUktkECX8
crnZLTWjTjBMMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0
hwR/AAABMB0GA1UdDgQWBBQw4M+LZHAZjFLGvPgbzm6IOAcdkjAKBggqhkjOPQQD
AgNJADBGAiEAuNcuTSaRJBiqypsaOdI1Dwc/wgdMOo7/+TVOnzAQFDACIQCpQbQf
4ZXzuiSoZTSXRplJefjkJpykPalyGA89c9G1Hw==
-----END CERTIFICATE-----`;

export const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgpDjP6IeQ280Hr0Mj
yjL0aaNrvHd+LUknI2mTJuvMW4ehRANCAATIx4cr69K/KzWkwcdKYVvnjx99Mzlw
ScNsYuxzG5a6wTtAL5H2Pmz1dR5nuk6+85LqzMGbpFJLZBAl/HK52S01
-----END PRIVATE KEY-----`;

/** The same for orders.example.test, valid for a hundred years from 2026. */
export const NAMED_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBszCCAVmgAwIBAgIUW6MNBBbo2rzqDBTUPedizoFXeH8wCgYIKoZIzj0EAwIw
HjEcMBoGA1UEAwwTb3JkZXJzLmV4YW1wbGUudGVzdDAgFw0yNjExMzAxMTM2MTBa
GA8yMTI2MTEwNjExMzYxMFowHjEcMBoGA1UEAwwTb3JkZXJzLmV4YW1wbGUudGVz
dDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEOVw2jgFrvOZU8FqEIRmMvMB2at
whIhK0MhOa6o4BXk+gmlG7SxOBs/nCCHvrScIDbrrUFudzmCERpcMo+UVXKjczBx
MB0GA1UdDgQWBBR/tZn9zzWWIcyvfnKS4FzUPGvM1DAfBgNVHSMEGDAWgBR/tZn9
zzWWIcyvfnKS4FzUPGvM1DAPBgNVHRMBAf8EBTADAQH/MB4GA1UdEQQXMBWCE29y
ZGVycy5leGFtcGxlLnRlc3QwCgYIKoZIzj0EAwIDSAAwRQIhAIOeRs4QP2dohQ1z
JLmTP6k+2C3JA568/BsHXliiRl1VAiAjMSx50vgZGeJXsHhzED8H3q161/0XEnDp
gxoXN1SsTg==
-----END CERTIFICATE-----`;

const NAMED_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDIheiDyCuaypazWF
w32hzNjB+UlwXCPM2Ym0IcYs2CqhRANCAARDlcNo4Ba7zmVPBahCEZjLzAdmrcIS
IStDITmuqOAV5PoJpRu0sTgbP5wgh760nCA2661Bbnc5ghEaXDKPlFVy
-----END PRIVATE KEY-----`;

/** An HTTPS server with {@link CERTIFICATE}; not listening yet. */
export function createTlsServer(listener: RequestListener): Server {
  return createServer({ cert: CERTIFICATE, key: KEY }, listener);
}

/** An HTTPS server with {@link NAMED_CERTIFICATE}; not listening yet. */
export function createNamedTlsServer(listener: RequestListener): Server {
  return createServer({ cert: NAMED_CERTIFICATE, key: NAMED_KEY }, listener);
}
