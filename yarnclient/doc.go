// Package yarnclient speaks to YARN: this package is the REST client of the ResourceManager, which submits, watches and ends applications.
// Beside it are the ApplicationMaster's protocol (amrm, whose rules are package book), the NodeManagers' protocol (nm),
// the names of things (yarnid) and a cluster in the process for tests (yarntest).
//
// REST serves where the cluster lets it; what it can't carry goes by RPC. A Client may ask any ResourceManager of a highly available
// group: it finds the active one and follows it when it changes.
package yarnclient
