"""`python -m ipu_tensorflow_addons.saved_model_tool`: the command line of `saved_model_cli`."""

from tf_ipu_shim.api.addons.saved_model_tool import saved_model_cli

if __name__ == "__main__":
    saved_model_cli.main()
