// Package hrpc is a client of Hadoop's RPC, version 9: many calls at once over one connection, each with a deadline,
// with SASL (simple, and tokens by DIGEST-MD5 at every protection; others by way of Authenticator), pings, and retry and failover by what went wrong.
//
// A Client speaks one protocol as one user to one service, which may have several addresses of which one is active. It keeps at most
// one connection, made when it is needed and closed when it is idle.
//
// # Frames
//
// A connection begins with "hrpc", version 9, service class 0 and 0 (no SASL) or 0xDF (SASL). After that both sides send frames:
//
//	uint32  length of the rest, big-endian
//	        a header and messages, each preceded by its length as a varint
//
// A request's header is RpcRequestHeaderProto, an answer's RpcResponseHeaderProto. Call -3 carries the connection's context, -4 is a
// ping, and -33 is SASL; where SASL agreed on signing or sealing, all later frames travel inside those of call -33.
package hrpc
