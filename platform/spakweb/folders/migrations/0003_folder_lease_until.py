from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("folders", "0002_pull_per_spec"),
    ]

    operations = [
        migrations.AddField(
            model_name="folder",
            name="lease_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
