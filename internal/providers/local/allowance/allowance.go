// Package allowance lets tests of polderd-fault turn off what a local machine checks of its flags, files and
// configuration, so that they can see what else stops a hostile one. In the binaries people use it is always on.
package allowance
