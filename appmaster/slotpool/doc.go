// Package slotpool holds the slots that one job has, and matches them to what the job asks for. It is pure.
//
// The scheduler asks in bulks: one request for each shared slot of each slot sharing group. The pool declares the sum
// as the job's requirement, takes the slots that are offered, and answers a bulk whole or not at all, in the order in
// which bulks came. Nothing that happens on the resource side touches a slot that is in use: only its agent's loss does.
//
//	           Offer            bulk fulfilled            Release
//	(nothing) ──────> free ──────────────────────> used ──────────> free ── surplus ──> given back
//	                   └──────────── Lost ───────────┘
//
// # Which slot
//
// In this order: the request's own former slot; another slot of its former agent; then by location, a preferred agent before
// a preferred host before a preferred rack before any other; then by strategy: the default fills one agent after the other,
// evenly-spread takes the agent with most slots free, and among equals one of the host with most. Among the slots left over,
// the smallest that fits.
//
// A large bulk is matched in steps, one a Due, so that no event takes long. What came meanwhile counts: new slots may be
// taken, and the loss of one that was begins the match anew.
package slotpool
