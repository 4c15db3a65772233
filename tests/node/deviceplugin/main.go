// Advertises GPUs that do not exist, so that values files for GPUs run unchanged on the tests' node.
//
// It is a fake: a container that is given one of these devices gets nothing, for the tests' engine is the CPU
// build of vLLM. What the scheduler and the kubelet do with the resource is real.
//
//	gpu-device-plugin nvidia.com/gpu 8
package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const socket = "gpu-device-plugin.sock"

type plugin struct {
	api.UnimplementedDevicePluginServer
	count int
}

func (p plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch reports every device as healthy, once and for good.
func (p plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	devices := make([]*api.Device, p.count)
	for i := range devices {
		devices[i] = &api.Device{ID: "fake-" + strconv.Itoa(i), Health: api.Healthy}
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate adds nothing to the containers.
func (p plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{})
	}
	return response, nil
}

// register tells the kubelet the resource and where to ask for its devices; it waits for a kubelet that starts.
func register(resource string) error {
	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: socket, ResourceName: resource}
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(), request, grpc.WaitForReady(true))
	return err
}

func main() {
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(api.DevicePluginPath, socket))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, plugin{count: count})
	go func() { log.Fatal(server.Serve(listener)) }()
	if err := register(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	log.Printf("advertising %s %s", os.Args[2], os.Args[1])
	select {}
}
