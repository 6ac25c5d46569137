// Package book keeps an ApplicationMaster's account with the ResourceManager: what is asked for, granted, to be given back and
// blacklisted, and what the next heartbeat must say. It is pure: the caller sends Request's message and reports what came of it.
//
// An ask is absolute: the message says how many containers are still wanted under a key of priority and request number, not how
// many more. The ResourceManager lowers the number by itself when it grants, and so does the Book; therefore it names an ask again only
// when someone changed it. What is granted beyond the number is surplus and goes back with the next heartbeat.
//
// A heartbeat whose answer was lost is sent again as it was: if the ResourceManager had taken it, it
// repeats its answer and reads nothing new. When the ResourceManager has forgotten the master (it restarted or another took over), Resync puts
// everything still open into the next message.
package book
