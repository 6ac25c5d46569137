// Package ship brings a job to a cluster by HDFS. It chooses the program to send, builds one that the cluster can run where this one can't be,
// keeps it there once under its SHA-256, stores an application's own files beside it, and removes what is no longer needed.
//
// In the staging folder, which is .heddle in the user's home or one of the user's name in a configured folder, are
//
//	bin/<SHA-256>              a program; never changed once it is there
//	apps/<application>/        an application's folder
//	    uses-<SHA-256>         names the program, so that it is not taken away
//	    app.zip                the job, its configuration and Hadoop's
//	    files/…                what else was sent along
//
// A configured staging folder may also have a folder bin of an administrator's with programs for everybody.
package ship
